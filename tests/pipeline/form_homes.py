"""What tests of all forms of `memory` share: what each says, with a mark in every text, and commands on a home."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS
from tests.core.forms import sample
from tests.pipeline.conftest import fork_memstate
from tests.pipeline.erased_homes import dump

AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}
FIRST, SECOND, THIRD = (f"2026-03-0{day}T02:00:00Z" for day in (1, 2, 3))
SESSION = "memory:session_state"
POLICY = "[policy]\nsession_complete_after_days = 10\n"
SAID: dict[str, list[dict[str, Any]]] = {
    "core_block": [{"label": "rules {m}label", "content": "Ask {m}content first.", "authority": 3}],
    "session_state": [
        {"session_id": "{m}session", "current_goal": "Find {m}goal", "summary": "So far {m}summary",
         "working_set": ["{m}set.md"]}
    ],
    "resource": [
        {"uri": "boat:/{m}uri", "title": "Manual {m}title", "kind": "doc", "content": "The winch {m}text turns left.",
         "parent_uri": "boat:/{m}parent"}
    ],
    "fact": [
        {"subject": "title:Firm {m}subject", "predicate": "owner_{m}predicate", "object": "Aya {m}object",
         "confidence": 0.7, "valid_from": "2026-01-01", "sources": ["{m}source"]},
        {"subject": "key:{m}harbour", "predicate": "run_by", "object_item": "title:Firm {m}subject"},
    ],
    "relation": [
        {"source": "key:{m}harbour", "relation": "supersedes", "target": "title:Firm {m}subject"},
        {"source": "resource:boat:/{m}uri", "relation": "contradicts", "target": "block:rules {m}label",
         "valid_until": "after {m}never"},
        {"source": "title:Pier {m}pier", "relation": "extends", "target": "key:{m}harbour"},
    ],
    "verification": [
        {"target": "key:{m}harbour", "status": "warning", "message": "Ask {m}message again.", "check": "{m}check"}
    ],
}  # fmt: skip
"""What forms say, with a mark in every text that they have; of a form without an entry a sample is made."""


def said(form: type[Form], mark: str) -> list[dict[str, Any]]:
    """What a form says with this mark."""
    given = SAID.get(form.form()) or [sample(form, "{m}")]
    return [{"type": form.form()} | json.loads(json.dumps(each).replace("{m}", mark)) for each in given]


def memories(mark: str) -> list[dict[str, Any]]:
    """What all forms say with this mark."""
    return [each for form in FORMS for each in said(form, mark)]


def own_words(form: type[Form], mark: str) -> list[str]:
    """The marked words of a form that no other record has."""
    others = json.dumps([said(other, mark) for other in FORMS if other is not form] + beside(mark, {}))
    found = re.findall(f"{mark}[a-z_]+", json.dumps(said(form, mark)))
    return sorted(word for word in set(found) if word not in others)


def names_of(form: type[Form], mark: str) -> list[str]:
    """The ids of its observations in `rows`."""
    return [f"{mark}o{number}" for number, each in enumerate(memories(mark)) if each["type"] == form.form()]


def of_session(mark: str) -> dict[str, Any]:
    return {"session_id": f"{mark}session", "actor": f"{mark}actor"}


def beside(mark: str, base: dict[str, Any]) -> list[dict[str, Any]]:
    """Two structured records of a topic that forms name."""
    quay = base | of_session(mark) | {"topic_key": f"{mark}harbour", "title": f"Quay {mark}title"}
    depth = {"name": f"{mark}field", "value": f"{mark}value"}
    notes = {"filePath": f"{mark}file.md", "gitBranch": f"{mark}branch"}
    old = quay | {"observation_id": f"{mark}h", "fields": [depth | {"valid_from": "2025-12-01"}]} | notes
    return [old, quay | {"observation_id": f"{mark}h2", "fields": [depth | {"value": "deeper"}]}]


def rows(mark: str, scope: dict[str, str], day: str) -> list[dict[str, Any]]:
    """Records of a scope, all of one session and one actor."""
    base = {"scope": scope, "observed_at": day}
    given = [
        base | of_session(mark) | {"observation_id": f"{mark}o{number}", "memory": each}
        for number, each in enumerate(memories(mark))
    ]
    return [*given, *beside(mark, base)]


OLD = rows("zq7a", AYA, "2026-02-10T00:00:00Z"), rows("zq7b", BEN, "2026-02-28T00:00:00Z")
NEW = rows("zq7c", AYA, "2026-03-01T12:00:00Z"), rows("zq7d", BEN, "2026-01-01T00:00:00Z")
"""What the first night and the second one find, by dump; the last dump is late."""


def document(home: Path, *command: str) -> dict[str, Any]:
    answer = fork_memstate(home, *command, "--json")
    assert answer.code == 0, answer.stderr + answer.stdout
    found: dict[str, Any] = answer.document
    return found


def imported(home: Path, given: list[dict[str, Any]]) -> None:
    path = dump(home.parent / "dump.jsonl", given)
    assert document(home, "import", str(path))["accepted"] == len(given)
    path.unlink()


def night(home: Path, now: str) -> str:
    return str(document(home, "maintain", "--now", now)["state_hash"])


def answers(home: Path) -> list[dict[str, Any]]:
    """What the commands that read say, without what follows from the folder."""
    asked = [
        ("export",),
        ("facts", "--history"),
        ("context", "Who runs the firm at the quay?", "--budget", "900", "--scope", "user:aya"),
        ("memory", "browse-resources", "--all", "--scope", "user:aya"),
        ("memory", "probe-relations", "key:zq7aharbour", "--scope", "user:aya"),
    ]
    return [document(home, *command) for command in asked]
