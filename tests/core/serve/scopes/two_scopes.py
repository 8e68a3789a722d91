"""A store with two scopes that reach for each other, and who asks it.

Everything of the other scope carries one word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memstate_core.policy.settings import Settings
from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.state.home import Home
from tests.core.retrieve.conftest import Store as Draft
from tests.core.serve.conftest import Answer, Client
from tests.pipeline.conftest import NIGHT, run_memstate

FOREIGN, GHOST = "quagga", "quaggb"
"""The word of the other scope, and one that nothing carries; they sort side by side."""
MINE = "user:mine"
NOW = datetime(2026, 6, 1, tzinfo=UTC)

Request = tuple[str, str, Any]
ASKED = "Which striped animal drinks at the river?"
OBSERVED = {"text": "An otter.", "scope": {"type": "user", "id": "mine"}, "observed_at": "2026-05-01T00:00:00Z"}


OBJECTS: dict[str, dict[str, Any]] = {
    "core_block": {"content": f"The {FOREIGN} drinks at the river."},
    "session_state": {"status": "active", "current_goal": f"Find the {FOREIGN}"},
    "resource": {"uri": f"{FOREIGN}:/", "content": f"Striped animals such as the {FOREIGN} drink at the river."},
}
"""The objects of memory of the other scope, by type, with their fields."""


@dataclass(frozen=True)
class Caller:
    """A client that shows a key."""

    client: Client
    token: str

    def __call__(self, method: str, path: str, body: Any = None) -> Answer:
        response = self.client(method, path, body, X_API_Key=self.token, X_Request_Id="walk")
        assert response.status not in (401, 429)
        return response


def key_for(store: Store, name: str, role: key_file.RoleName, scopes: list[str] | None, number: int) -> str:
    entropy = bytes([number]) * (key_file.ID_BYTES + key_file.SECRET_BYTES)
    made = key_file.make(name, scopes=scopes, role=role, entropy=entropy, now=NOW)
    key_file.add(store.home.keys, made.key)
    return made.token


def entangled(draft: Draft) -> None:
    """Two scopes with every tie between them that a graph can hold, most of which no run makes."""
    other = f"user:{FOREIGN}"
    draft.topic("own", MINE, title="The river bank", summary="Where animals drink", topic_kind="place")
    draft.field("own", "visitor", (20, "a heron"), (3, "an otter"), ref_topic_id=f"{FOREIGN}-topic", ref_state="kept")
    draft.field("own", "rumour", (9, "stripes"), ref_topic_id=f"{FOREIGN}-topic", ref_state="dangling")
    draft.field("own", "keeper", (8, "Ada"), ref_topic_id="beside", ref_state="kept")
    draft.topic("beside", MINE, title="The ford", summary="A shallow place in the river")
    draft.topic("lost", MINE, state="merged", merged_into=f"{FOREIGN}-topic")
    draft.topic(f"{FOREIGN}-topic", other, title=f"The {FOREIGN}", summary=f"A striped {FOREIGN} that drinks here")
    draft.field(f"{FOREIGN}-topic", f"{FOREIGN}_field", (20, f"{FOREIGN} herd"), (3, f"one {FOREIGN}"))
    draft.topic(f"{FOREIGN}-archived", other, title=f"Old {FOREIGN}", state="archived")
    draft.topic(f"{FOREIGN}-merged", other, state="merged", merged_into="own")
    draft.aliases += [
        {"alias": f"{FOREIGN}-alias", "scope": other, "topic_id": "own"},
        {"alias": "own-alias", "scope": MINE, "topic_id": f"{FOREIGN}-topic"},
    ]
    for kind, fields in OBJECTS.items():
        draft.topic(f"{FOREIGN}-{kind}", other, title=FOREIGN, topic_kind=f"memory:{kind}")
        for name, value in fields.items():
            draft.field(f"{FOREIGN}-{kind}", name, (4, value))
    draft.topic("own-resource", MINE, title="Map", topic_kind="memory:resource")
    for name, value in (("uri", "map:/"), ("parent_uri", "river:/"), ("content", "A river.")):
        draft.field("own-resource", name, (4, value))
    for one, two in (("own", f"{FOREIGN}-topic"), (f"{FOREIGN}-topic", "beside"), ("own", "beside")):
        draft.edge(one, two, "part_of")
    for topic, cause in (("own", f"{FOREIGN}-topic"), (f"{FOREIGN}-topic", "own")):
        response = f"{cause} changed, 1 extension away"
        draft.reviews.append(
            {"id": topic, "topic_id": topic, "cause_topic_id": cause, "hops": 1, "reason": response, "queued_at": NOW}
        )
    draft.says("own", "A heron stands at the river.", on=20, scope=MINE, actor="Ines", session_id="walk", turn=1)
    draft.says(f"{FOREIGN}-topic", "Striped animals at the river.", on=21, scope=MINE)
    draft.says(
        f"{FOREIGN}-topic", f"The striped {FOREIGN} drinks at the river.", on=22, scope=other, actor=FOREIGN,
        session_id=f"{FOREIGN}-session", turn=1, observation_id=f"{FOREIGN}-observation",
    )  # fmt: skip


def rows() -> Iterator[dict[str, Any]]:
    """What two users say, one of whom tries to reach over."""
    other = {"scope": {"type": "user", "id": FOREIGN}, "observed_at": "2026-03-01T00:00:00Z"}
    mine = {"scope": {"type": "user", "id": "mine"}, "observed_at": "2026-04-01T00:00:00Z"}
    yield other | {
        "observation_id": f"{FOREIGN}-observation", "topic_id": f"{FOREIGN}-topic", "title": f"The {FOREIGN}",
        "text": f"The striped {FOREIGN} drinks at the river.", "summary": f"A striped {FOREIGN} that drinks here",
        "fields": [{"name": f"{FOREIGN}_field", "value": f"{FOREIGN} herd"}],
    }  # fmt: skip
    yield other | {"text": f"Nobody saw the {FOREIGN} today.", "actor": FOREIGN, "session_id": FOREIGN, "turn": 1}
    names = {"core_block": {"label": FOREIGN}, "session_state": {"session_id": FOREIGN}, "resource": {"title": FOREIGN}}
    for kind, fields in OBJECTS.items():  # late enough for the session to be active still
        yield other | {"observed_at": "2026-03-20", "memory": {"type": kind} | names[kind] | fields}
    yield mine | {"memory": {"type": "resource", "uri": "map:/", "title": "Map", "parent_uri": "river:/"}}
    ties = [{"to_topic_id": f"{word}-topic", "kind": "part_of"} for word in (FOREIGN, GHOST)]
    refers = [
        {"name": name, "value": "stripes", "ref_topic_id": f"{word}-topic"}
        for name, word in (("rumour", FOREIGN), ("legend", GHOST))
    ]
    yield mine | {"topic_id": "own", "title": "The river bank", "text": "A heron.", "fields": refers, "edges": ties}
    yield mine | {"topic_id": "beside", "title": "The ford", "edges": [{"to_topic_id": "own", "kind": "part_of"}]}
    yield mine | {"topic_id": f"{FOREIGN}-topic", "title": "The otter", "text": "It is mine."}


def night(home: Path) -> Store:
    home.mkdir()
    (home / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    assert run_memstate(home, "import", str(home / "dump.jsonl"), "--now", "2026-04-05T00:00:00Z").code == 0
    response = run_memstate(home, "maintain", "--now", NIGHT)
    assert response.code == 0, response.stderr
    return Store(Home(home), Settings())
