"""The name of an embedding model together with the prefixes of its texts.

Vectors of one model with different prefixes must not be compared, so the prefixes belong to the name under which
vectors are cached, stored on topics and recorded in manifests. A model without prefixes keeps its plain name.
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
    """

    model: str
    query_prefix: str = ""
    passage_prefix: str = ""

    def __str__(self) -> str:
        """The name on record: that of the model, or with prefixes all three as JSON."""
        if self == ModelName(self.model):
            return self.model
        return json.dumps(self._asdict(), ensure_ascii=False, sort_keys=True)

    @classmethod
    def parsed(cls, recorded: str) -> ModelName:
        """The model and prefixes of a name on record."""
        if recorded.startswith("{"):
            try:
                return cls(**json.loads(recorded))
            except (ValueError, TypeError):  # a folder may have such a name
                return cls(recorded)
        return cls(recorded)
