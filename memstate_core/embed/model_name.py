"""The name of an embedding model together with the prefixes of its texts and the place where it runs.

Vectors of one model with different prefixes must not be compared, nor those of two models that have one name in two
places, so these belong to the name under which vectors are cached, stored on topics and recorded in manifests. A model
of this machine without prefixes keeps its plain name.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class ModelName(NamedTuple):
    """A model and its prefixes.

    Attributes:
        model: the packaged model or the path of a folder.
        query_prefix: what stands before a question.
        passage_prefix: what stands before a text that is searched.
        endpoint: the URL of the API that has the model; empty for this machine.
    """

    model: str
    query_prefix: str = ""
    passage_prefix: str = ""
    endpoint: str = ""

    def __str__(self) -> str:
        """The name on record: that of the model, or with prefixes or an endpoint all parts as JSON."""
        if self == ModelName(self.model):
            return self.model
        parts = {name: part for name, part in self._asdict().items() if part or name != "endpoint"}
        return json.dumps(parts, ensure_ascii=False, sort_keys=True)

    @classmethod
    def parsed(cls, recorded: str) -> ModelName:
        """The model and prefixes of a name on record."""
        if recorded.startswith("{"):
            try:
                return cls(**json.loads(recorded))
            except (ValueError, TypeError):  # a folder may have such a name
                return cls(recorded)
        return cls(recorded)
