"""Core blocks through nights that forget, merge and place: always in the packs of their scope, changed by none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memstate_core.client import MemoryClient
from memstate_core.model.forms.core_block import CORE_BLOCK
from memstate_core.run.store import open_store
from memstate_core.serve.options import Options
from tests.core.serve.conftest import served
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}
PERSONA = "Aya sails every weekend. She answers letters on Monday and dislikes the telephone."
SAILING = "How Aya spends her weekends sailing"
FORGETFUL = """
[policy]
topic_count_soft_limit = 0
max_active_topics = 1
salience_half_life_days = 1
placement_similarity = 0.0
placement_probability = 0.5
pinned_kinds = ["deal"]
merge_probability = 0.51
review_probability = 0.0001
"""


def block(label: str, content: str, day: str, scope: dict[str, str] = AYA, **more: Any) -> dict[str, Any]:
    form = {"type": "core_block", "label": label, "content": content}
    return {"scope": scope, "observed_at": day, "memory": form | more}


def chat(number: int, texts: Sequence[str]) -> list[dict[str, Any]]:
    own = {"scope": AYA, "session_id": f"s{number}", "actor": "Aya"}
    return [
        own | {"observed_at": f"2026-02-01T{number % 24:02}:{turn:02}:00Z", "turn": turn, "text": text}
        for turn, text in enumerate(texts)
    ]


def chats() -> Iterator[dict[str, Any]]:
    """Conversations about one thing each, by which continuations of the scope are calibrated."""
    things = (
        "bicycle",
        "piano",
        "garden",
        "kitchen sink",
        "tax return",
        "garage roof",
        "telescope",
        "sourdough",
        "chess",
    )
    for number, thing in enumerate(things):
        yield from chat(number, [f"The {thing} needs care.", f"Who looks after the {thing}?", f"My {thing} is old.",
                                 f"I bought parts for the {thing}."])  # fmt: skip


FIRST = [
    *chats(),
    block("persona", "Aya sails.", "2026-01-01", authority=5),
    block("persona", PERSONA, "2026-02-01", authority=5, read_only=True),
    block(SAILING, PERSONA, "2026-02-01"),
    block("house rules", "Never\nsend a letter unread.", "2026-01-02", authority=9),
    block("persona", "Ben walks.", "2026-01-01", BEN, authority=5),
    {"scope": AYA, "observed_at": "2026-01-03", "title": "Letter to the harbour", "text": "The letter is late."},
    {"scope": AYA, "observed_at": "2026-01-03", "title": "Mooring fee", "text": "The fee is due."},
]
LATER = [
    {"scope": AYA, "observed_at": "2026-03-01", "title": "persona", "summary": PERSONA,
     "fields": [{"name": "content", "value": PERSONA}]},
    *chat(99, [SAILING, PERSONA]),
]  # fmt: skip
"""A record with the title of a block, and turns that repeat another."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after three nights, the last one a year later, under a policy that keeps one topic of a scope."""
    made = tmp_path_factory.mktemp("core") / "home"
    made.mkdir()
    (made / "memstate.toml").write_text(FORGETFUL)
    for rows, now in ((FIRST, "2026-03-01T02:00:00Z"), (LATER, "2026-03-03T02:00:00Z"), ([], "2027-03-01T02:00:00Z")):
        dump = made.parent / "dump.jsonl"
        dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert run_memstate(made, "import", str(dump), "--json").document["accepted"] == len(rows)
        done = run_memstate(made, "maintain", "--now", now)
        assert done.code == 0, done.stderr
    return made


def pack(home: Path, *options: str, budget: int = 400) -> dict[str, Any]:
    answer = run_memstate(home, "context", "When does Aya answer?", "--budget", str(budget), *options, "--json")
    assert answer.code == 0, answer.stderr
    document: dict[str, Any] = answer.document
    return document


def topics(home: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run_memstate(home, "export", "--json").document["topics"]
    return found


def test_no_night_archives_merges_condenses_or_adds_to_a_block(home: Path) -> None:
    blocks = [topic for topic in topics(home) if topic["topic_kind"] == CORE_BLOCK]
    assert sorted((topic["scope"], topic["title"], topic["state"]) for topic in blocks) == [
        ("user:aya", SAILING, "active"),
        ("user:aya", "house rules", "active"),
        ("user:aya", "persona", "active"),
        ("user:ben", "persona", "active"),
    ]
    others = [topic for topic in topics(home) if topic["topic_kind"] != CORE_BLOCK and topic["scope"] == "user:aya"]
    assert others, "there is nothing else that the policy could have archived"
    assert {topic["state"] for topic in others} == {"archived"}
    assert sorted(len(topic["observation_ids"]) for topic in blocks) == [1, 1, 1, 2]
    assert run_memstate(home, "merges", "--json").document["merges"] == []
    assert run_memstate(home, "review", "--json").document["pairs"] == []
    assert run_memstate(home, "verify").code == 0


def test_a_pack_begins_with_the_blocks_of_its_scope_by_authority(home: Path) -> None:
    found = pack(home, "--scope", "user:aya")
    assert found["text"].split("\n")[:4] == [
        "# Core memory",
        "- house rules: Never send a letter unread. [1]",
        f"- persona: {PERSONA} [2]",
        f"- {SAILING}: {PERSONA} [3]",
    ]
    first = found["citations"][0]
    assert (first["kind"], first["title"], first["field"], first["scope"]) == (
        "core", "house rules", "content", "user:aya",
    )  # fmt: skip
    assert first["evidence_ids"]
    assert "Ben" not in found["text"]
    assert found["text"].count(PERSONA) == 2, "blocks are repeated as topics or evidence"
    assert (found["left_out"]["core"], found["core_left_out"]) == (0, [])
    assert found["tokens"] <= found["budget"]


def test_a_block_is_whole_or_named_as_left_out(home: Path) -> None:
    found = pack(home, "--scope", "user:aya", budget=20)
    assert found["text"].split("\n")[:2] == ["# Core memory", "- house rules: Never send a letter unread. [1]"]
    assert [each["title"] for each in found["core_left_out"]] == ["persona", SAILING]
    assert all(each["tokens"] > 8 for each in found["core_left_out"])
    assert found["left_out"]["core"] == 2
    plain = run_memstate(home, "context", "When does Aya answer?", "--budget", "20", "--scope", "user:aya").stdout
    assert "core block persona of user:aya did not fit" in plain


def test_a_pack_of_the_past_has_the_blocks_as_they_were(home: Path) -> None:
    found = pack(home, "--scope", "user:aya", "--as-of", "2026-01-15T00:00:00Z")
    assert found["text"].split("\n")[1:4] == [
        "# Core memory",
        "- house rules: Never send a letter unread. [1]",
        "- persona: Aya sails. [2]",
    ]


def test_without_a_scope_the_blocks_are_those_of_what_was_found(home: Path) -> None:
    found = pack(home)
    scopes = {each["scope"] for each in found["citations"] if each["kind"] == "core"}
    assert "user:aya" in scopes


def test_a_server_stores_blocks_and_packs_them_for_whom_they_are(home: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(home, tmp_path / "home"))
    with served(open_store(own, {}), Options(poll_seconds=0.05)) as raw, MemoryClient(raw.url) as client:
        client.ingest([block("persona", "Aya rows.", "2026-11-01")])
        packed = client.context("Who is Ben?", budget=200, scope="user:ben")
        assert packed.text.split("\n")[1] == "- persona: Ben walks. [1]"
        assert "Aya" not in packed.text
        assert run_memstate(own, "maintain", "--now", "2027-04-02T02:00:00Z").code == 0
    assert "- persona: Aya rows. [2]" in pack(own, "--scope", "user:aya")["text"]
    mine = (each for each in topics(own) if each["topic_kind"] == CORE_BLOCK and each["scope"] == "user:aya")
    persona = next(each for each in mine if each["title"] == "persona")
    assert [each["value"] for each in persona["fields"]["content"]["history"]] == ["Aya rows.", PERSONA, "Aya sails."]


def test_a_rebuilt_store_has_the_same_state(home: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(home, tmp_path / "home"))
    rebuilt = run_memstate(own, "rebuild", "--json")
    assert rebuilt.code == 0, rebuilt.stderr
    assert run_memstate(own, "verify").code == 0
    assert topics(own) == topics(home)
