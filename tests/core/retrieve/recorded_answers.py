"""A made store with everything that answers show, questions to it, and the answers that were recorded.

The recorded answers began with those of the code at 6f52504, which computed them by joins and filters of whole frames;
since then they follow each intended change. To record anew after one:
`python -m tests.core.retrieve.recorded_answers`; look at what differs first.
"""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from memstate_core.retrieve.query import STAGES, Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from tests.core.retrieve.conftest import NOW, Store, day

RECORDED = Path(__file__).with_name("recorded_answers.json.gz")
_WORDS = (
    "harbour", "ferry", "bench", "larch", "gate", "crane", "choir", "office", "painting", "boat", "market", "bridge",
    "Straße", "müde", "船", "schedule", "owner", "budget", "Ines", "Marta", "Kate", "now", "moved", "no longer",
)  # fmt: skip
_ACTORS = ("Ines Vogel", "Marta", None)
_KINDS = ("mentions", "part_of", "assigned_to", "associated_with")
_SCOPES = ("user:a", "user:b", "project:c")
_FORMS = (
    "What is {} now?", "Where did {} go on 3 January 2026?", "{}", "Who is Ines and {}?", "Has Marta {}?",
    "Was {} gestern?", "Kate, what about {} last week?", "Straße {} 船?",
)  # fmt: skip


def made_store(seed: int = 3) -> Store:
    """Three scopes of topics with fields, conflicts, warnings, edges and chats."""
    rng, store = random.Random(seed), Store()
    ids: dict[str, list[str]] = {}
    for number in range(90):
        scope = _SCOPES[number % 5 % 3]
        topic = f"t{number:03d}"
        ids.setdefault(scope, []).append(topic)
        state = rng.choices(["active", "archived"], [9, 1])[0]
        title = " ".join(rng.sample(_WORDS, 2))
        store.topic(topic, scope, title=title, summary=rng.choice([None, _said(rng)]), state=state,
                    topic_kind=rng.choice([None, "project"]), salience=rng.choice([0.5, 1.0, 1.0, 2.5]))  # fmt: skip
        _fields(rng, store, topic)
    for scope, topics in ids.items():
        for _ in range(3 * len(topics)):
            pair, kind = rng.sample(topics, 2), rng.choice(_KINDS)
            if not any((edge["from_id"], edge["to_id"], edge["kind"]) == (*pair, kind) for edge in store.edges):
                store.edge(*pair, kind, detached=rng.random() < 0.1, valid_until=rng.choice([None, None, day(9)]))
        _chats(rng, store, scope, topics)
        for place in ("at the larch gate", "at the bridge, no longer at the larch gate"):
            store.says(topics[0], f"The ferry office is {place}.", on=70, scope=scope, actor="Marta", session_id="move")
    return store


def _said(rng: random.Random) -> str:
    return f"{' '.join(rng.sample(_WORDS, rng.randrange(2, 9)))}{rng.choice('.?!')}"


def _fields(rng: random.Random, store: Store, topic: str) -> None:
    for name in rng.sample(["status", "owner", "limit"], rng.randrange(4)):
        values = [(10 * (3 - place), rng.choice(["open", 7, None, ["x"]])) for place in range(rng.randrange(1, 4))]
        dangling = {"ref_topic_id": "nobody", "ref_state": "dangling"} if rng.random() < 0.2 else {}
        store.field(topic, name, *values, detached=rng.random() < 0.1, **dangling)
        if len(values) > 1 and rng.random() < 0.4:
            newest = store.revisions[-len(values)]
            newest |= {"rivals": [store.revisions[1 - len(values)]["id"]], "settled_at": rng.choice([None, day(40)])}
    if rng.random() < 0.2:
        review = {"id": f"r/{topic}", "topic_id": topic, "cause_topic_id": "t000", "hops": 1, "queued_at": NOW}
        store.reviews.append(review | {"reason": "it extends what changed"})


def _chats(rng: random.Random, store: Store, scope: str, topics: Sequence[str]) -> None:
    for session in range(12):
        for turn in range(rng.randrange(2, 9)):
            store.says(rng.choice([*topics, None]), _said(rng), on=5 * session, scope=scope, actor=rng.choice(_ACTORS),
                       session_id=f"{scope}/{session}", turn=turn, embed=rng.random() < 0.9)  # fmt: skip


def questions(seed: int = 4) -> Iterator[Question]:
    """Questions with all options but moments of the past."""
    rng = random.Random(seed)
    for number in range(60):
        text = rng.choice(_FORMS).format(" ".join(rng.sample(_WORDS, rng.randrange(1, 4))))
        asked = Question(text, rng.choice([None, *((scope,) for scope in _SCOPES), _SCOPES[:2]]), asked_at=NOW)
        stages = rng.choice([STAGES, STAGES, frozenset[str](), frozenset({"semantic"}), frozenset({"structural"})])
        asked = replace(asked, top_k=rng.choice([1, 4, 8, 30]), evidence_k=rng.choice([0, 2, 10]), stages=stages)
        asked = replace(
            asked, explain=number % 3 == 0, history=number % 7 == 0, policy="auto" if number % 11 == 0 else None
        )
        if number % 6 == 1:
            asked = replace(asked, scopes=None, topic_ids=("t004", f"t0{rng.randrange(10, 90)}"))
        yield replace(asked, field_names=("owner",)) if number % 8 == 2 else asked


def answers(readers: Sequence[SnapshotReader], store: Store) -> list[dict[str, Any]]:
    """The answers to all questions, as JSON has them."""
    found = [answer(readers, store.encoder, None, asked) for asked in questions()]  # type: ignore[arg-type]
    return json.loads(json.dumps(found, ensure_ascii=False))


def _record() -> None:
    store = made_store()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        snapshot = store.publish(Path(folder) / "snapshots" / "s0" / "3")
        found = answers([stack.enter_context(SnapshotReader(snapshot))], store)
    RECORDED.write_bytes(gzip.compress(json.dumps(found, ensure_ascii=False).encode(), mtime=0))


if __name__ == "__main__":
    _record()
