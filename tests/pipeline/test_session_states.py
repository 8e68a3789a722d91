"""Session states and resources through nights: packed while active, completed by silence, undoable, never lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.client import MemoryClient
from memstate_core.model.forms.resource import Resource
from memstate_core.model.forms.session_state import SessionState
from memstate_core.model.ids import key_id
from memstate_core.run.store import open_store
from memstate_core.serve.options import Options
from tests.core.serve.conftest import served
from tests.core.serve.mcp.calls import call, document, over_http
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow

AYA, BEN = {"type": "user", "id": "aya"}, {"type": "user", "id": "ben"}
SESSION = SessionState.topic_kind()
POLICY = "[policy]\nsession_complete_after_days = 10\n"
PARTS = " ".join(f"Paragraph {number} is about nothing." for number in range(2000))
MANUAL = f"{PARTS} The winch handle is kept under the chart table. {PARTS}"


def state(session: str, day: str, scope: dict[str, str] = AYA, **more: Any) -> dict[str, Any]:
    return {
        "scope": scope,
        "observed_at": day,
        "memory": {"type": "session_state", "session_id": session} | more,
    }


def resource(uri: str, title: str, day: str = "2026-02-01", scope: dict[str, str] = AYA, **more: Any) -> dict[str, Any]:
    return {"scope": scope, "observed_at": day, "memory": {"type": "resource", "uri": uri, "title": title} | more}


def key_id_of(key: str) -> str:
    """The id of Aya's topic with this key."""
    frame = pl.DataFrame({"scope": ["user:aya"], "key": [key]})
    return str(frame.select(key_id(pl.col("scope"), pl.col("key"))).item())


FIRST = [
    state("s-silent", "2026-02-18", current_goal="Find the leak", working_set=["hull.md", "pump.md"]),
    state("s-fresh", "2026-02-25", current_goal="Book the ferry", summary="Two ferries run on Monday."),
    state("s-fresh", "2026-02-26", current_goal="Book the late ferry"),
    state("s-stuck", "2026-02-26", status="blocked", current_goal="Wait for the yard"),
    state("s-done", "2026-02-26", status="complete", current_goal="Sell the dinghy"),
    state("s-fresh", "2026-02-26", BEN, current_goal="Ben's goal"),
    resource("boat:/", "The boat", kind="other"),
    resource("boat:/manual", "Manual of the boat", kind="doc", content=MANUAL, parent_uri="boat:/"),
    resource("boat:/manual#2", "Manual of the boat", kind="note", content="See the manual.", parent_uri="boat:/"),
    resource("boat:/", "Ben's boat", scope=BEN),
    resource("boat:/log", "Log", "2026-02-10", BEN, content="Left."),
    resource("boat:/log", "Log of the boat", "2026-02-20", BEN, content="Left at noon.", parent_uri="boat:/"),
    {"scope": AYA, "observed_at": "2026-02-01", "title": "Mooring fee", "text": "The fee is due."},
    {
        "scope": AYA,
        "observed_at": "2026-02-27",
        "topic_id": key_id_of("memory:session_state:s-fresh"),
        "title": "s-fresh",
        "fields": [{"name": "current_goal", "value": "Sink the boat"}],
    },
    {
        "scope": AYA,
        "observed_at": "2026-02-27",
        "kind": "tool_result",
        "text": "The chart table test failed.",
        "details": {"tool": "pytest", "status": "error", "path": "boat/tests/table.py"},
    },
    {
        "scope": AYA,
        "observed_at": "2026-02-27",
        "kind": "file_edit",
        "text": "The chart table has a new drawer.",
        "details": {"path": "boat/table.py", "diff_summary": "one drawer added"},
    },
    {"scope": AYA, "observed_at": "2026-02-27", "kind": "user_message", "text": "Where is the chart table?"},
]


def night(home: Path, rows: Sequence[dict[str, Any]], now: str) -> dict[str, Any]:
    dump = home.parent / "dump.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run_memstate(home, "import", str(dump), "--json").document["accepted"] == len(rows)
    done = run_memstate(home, "maintain", "--now", now, "--json")
    assert done.code == 0, done.stderr
    made: dict[str, Any] = done.document
    return made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sessions") / "home"
    made.mkdir()
    (made / "memstate.toml").write_text(POLICY)
    night(made, FIRST, "2026-03-01T02:00:00Z")
    return made


@pytest.fixture
def own(home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(home, tmp_path / "home"))


def pack(home: Path, budget: int = 400, scope: str = "user:aya", *options: str) -> dict[str, Any]:
    answer = run_memstate(
        home, "context", "Where is the leak?", "--budget", str(budget), "--scope", scope, *options, "--json"
    )
    assert answer.code == 0, answer.stderr
    packed: dict[str, Any] = answer.document
    return packed


def states(home: Path) -> dict[str, str]:
    """The ladder state of each session of Aya."""
    found = run_memstate(home, "export", "--json").document["topics"]
    return {
        each["title"]: each["state"] for each in found if each["topic_kind"] == SESSION and each["scope"] == "user:aya"
    }


def test_a_silent_session_is_complete_and_nothing_else_is(home: Path) -> None:
    assert states(home) == {"s-silent": "archived", "s-fresh": "active", "s-stuck": "active", "s-done": "active"}
    assert run_memstate(home, "verify").code == 0


def test_a_pack_has_the_active_sessions_of_its_scope(home: Path) -> None:
    found = pack(home)
    lines = found["text"].split("\n")
    assert lines[:2] == ["# Active sessions", "- s-fresh: Book the late ferry; Two ferries run on Monday. [1]"]
    assert found["text"].count("late ferry") == 1
    assert not {"Ben's goal", "Wait for the yard"} & set(lines)
    first = found["citations"][0]
    assert (first["kind"], first["title"], first["scope"]) == ("session", "s-fresh", "user:aya")
    assert len(first["evidence_ids"]) == 2
    assert "Ben's goal" in pack(home, scope="user:ben")["text"]


def test_a_blocked_or_complete_session_is_in_no_pack_and_in_plain_answers(home: Path) -> None:
    question = "Who waits for the yard, and who sells the dinghy?"
    packed = run_memstate(home, "context", question, "--budget", "2000", "--scope", "user:aya", "--json").document
    assert not {"s-stuck", "s-done"} & {each.get("title") for each in packed["citations"]}
    assert "# s-stuck" not in packed["text"]
    plain = run_memstate(home, "query", question, "--scope", "user:aya", "--json").document
    assert {"s-stuck", "s-done"} <= {each["title"] for each in plain["candidates"]}


def test_a_session_that_does_not_fit_is_named(home: Path) -> None:
    found = pack(home, budget=8)
    assert [each["title"] for each in found["session_left_out"]] == ["s-fresh"]
    assert found["left_out"]["session"] == 1


def test_a_later_record_makes_a_silent_session_active_again(own: Path) -> None:
    night(own, [state("s-silent", "2026-03-02", summary="The pump leaks.")], "2026-03-03T02:00:00Z")
    assert states(own)["s-silent"] == "active"
    text = pack(own)["text"]
    assert "- s-silent: Find the leak; The pump leaks.; working set: hull.md, pump.md [" in text
    assert run_memstate(own, "verify").code == 0


def test_undo_makes_a_silent_session_active_until_it_is_silent_again(own: Path) -> None:
    silent = next(
        each["id"] for each in run_memstate(own, "export", "--json").document["topics"] if each["title"] == "s-silent"
    )
    undone = run_memstate(own, "undo", silent, "--now", "2026-03-04T02:00:00Z")
    assert undone.code == 0, undone.stderr
    night(own, [], "2026-03-05T02:00:00Z")
    assert states(own)["s-silent"] == "active"
    assert run_memstate(own, "verify").code == 0


def test_a_rebuilt_store_has_the_same_state(own: Path) -> None:
    before = run_memstate(own, "status", "--json").document["state_hash"]
    rebuilt = run_memstate(own, "rebuild", "--json")
    assert rebuilt.code == 0, rebuilt.stderr
    assert run_memstate(own, "status", "--json").document["state_hash"] == before


def test_the_order_and_the_splitting_of_dumps_make_no_difference(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "memstate.toml").write_text(POLICY)
    for part in (FIRST[::-2], FIRST[-2::-2]):
        dump = tmp_path / "dump.jsonl"
        dump.write_text("".join(json.dumps(row) + "\n" for row in part))
        assert run_memstate(other, "import", str(dump), "--json").document["accepted"] == len(part)
    made = night(other, [], "2026-03-01T02:00:00Z")
    assert made["state_hash"] == run_memstate(home, "status", "--json").document["state_hash"]


def test_a_long_resource_is_found_by_what_it_says_in_the_middle(home: Path) -> None:
    asked = run_memstate(home, "query", "Where is the winch handle?", "--scope", "user:aya", "--json").document
    found = [each for each in run_memstate(home, "export", "--json").document["topics"]
             if each["topic_kind"] == Resource.topic_kind() and each["title"] == "Manual of the boat"]  # fmt: skip
    assert len(found) == 2, "two resources with the same title were merged"
    assert asked["evidence"][0]["topic_id"] in {each["id"] for each in found}


def test_a_workspace_pack_has_the_resources_and_a_task_pack_the_sessions(own: Path) -> None:
    asked = ("memory", "context-pack", "The manual of the boat", "--scope", "user:aya", "--json")
    workspace = run_memstate(own, *asked, "--policy", "workspace").document
    assert {each["kind"] for each in workspace["citations"]} == {"resource"}
    assert [each["uri"] for each in workspace["citations"]][-1] == "boat:/"
    assert "- The boat (other, boat:/) [3]" in workspace["text"].split("\n")
    winch = run_memstate(own, "context", "Where is the winch handle?", "--budget", "300", "--scope", "user:aya",
                         "--policy", "workspace").stdout  # fmt: skip
    assert "The winch handle is kept under the chart table." in winch, "it is in the middle of a long text"
    task = run_memstate(own, *asked, "--policy", "task", "--tokenizer", "characters").document
    assert task["text"].split("\n")[0] == "# Active sessions"
    assert {each["kind"] for each in task["items"]} == {"session"}
    assert task["tokens"] == -(-len(task["text"]) // 4)
    with served(open_store(own, {}), Options(poll_seconds=0.05)) as raw, MemoryClient(raw.url) as memory:
        raw.until_ready()
        same = memory.context("The manual of the boat", 2000, scope="user:aya", policy="workspace")
        assert (same.text, same.counted_by) == (workspace["text"], workspace["counted_by"])
        assert [each.score for each in same.items] == [each["score"] for each in workspace["items"]]
        assert memory.context("x", 50, policy="task", tokenizer="characters").counted_by == "characters/4"


def test_search_is_a_short_query(home: Path) -> None:
    found = run_memstate(home, "memory", "search", "the mooring fee", "--scope", "user:aya", "--limit", "2", "--json")
    assert [len(found.document[part]) for part in ("candidates", "evidence")] == [2, 2]
    assert found.document["candidates"][0]["title"] == "Mooring fee"


def test_a_record_that_names_a_session_state_by_id_is_refused_in_the_open(home: Path) -> None:
    assert "Sink the boat" not in json.dumps(run_memstate(home, "export", "--json").document["topics"])
    kept = run_memstate(home, "query", "Sink the boat", "--scope", "user:aya", "--json").document["evidence"]
    assert [each["topic_id"] for each in kept if "Sink the boat" in each["text"]] == [None], "the evidence is kept"


def test_the_tree_of_resources_is_browsed_by_scope(home: Path) -> None:
    def browse(*options: str) -> list[dict[str, Any]]:
        answer = run_memstate(home, "memory", "browse-resources", *options, "--scope", "user:aya", "--json")
        assert answer.code == 0, answer.stderr
        found: list[dict[str, Any]] = answer.document["resources"]
        return found

    [root] = browse()
    assert (root["uri"], root["title"], root["children"], root["content"]) == ("boat:/", "The boat", 2, None)
    assert [each["uri"] for each in browse("--parent", "boat:/")] == ["boat:/manual", "boat:/manual#2"]
    [manual] = browse("--uri", "boat:/manual")
    assert (manual["content"], manual["characters"], manual["kind"]) == (MANUAL, len(MANUAL), "doc")
    assert len(browse("--all")) == 3


Browsed = list[tuple[str, str, int]]
"""URI, title and the number of children of each."""
THEN: dict[str, tuple[Browsed, Browsed]] = {
    "2026-01-15": ([], []),
    "2026-02-05": ([("boat:/", "Ben's boat", 0)], []),
    "2026-02-15": ([("boat:/", "Ben's boat", 0), ("boat:/log", "Log", 0)], []),
    "2026-02-25": ([("boat:/", "Ben's boat", 1)], [("boat:/log", "Log of the boat", 0)]),
}
"""What the roots and the children of the boat were, by day."""


@pytest.mark.parametrize("day", THEN)
def test_the_tree_of_resources_is_browsed_as_of_a_day(home: Path, day: str) -> None:
    roots, children = THEN[day]
    assert (browsed(home, "--as-of", day), browsed(home, "--as-of", day, "--parent", "boat:/")) == (roots, children)


def test_a_resource_has_the_content_of_the_day(home: Path) -> None:
    asked = ("memory", "browse-resources", "--uri", "boat:/log", "--scope", "user:ben", "--json")
    contents = {
        day: [each["content"] for each in run_memstate(home, *asked, "--as-of", day).document["resources"]]
        for day in THEN
    }
    assert list(contents.values()) == [[], [], ["Left."], ["Left at noon."]]
    assert run_memstate(home, *asked, "--as-of", "someday").code == 2


def browsed(home: Path, *options: str) -> Browsed:
    answer = run_memstate(home, "memory", "browse-resources", *options, "--scope", "user:ben", "--json")
    assert answer.code == 0, answer.stderr
    return [(each["uri"], each["title"], each["children"]) for each in answer.document["resources"]]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--evidence-kind", "tool_result"), ["The chart table test failed."]),
        (("--evidence-kind", "tool_result", "--evidence-kind", "user_message"),
         ["The chart table test failed.", "Where is the chart table?"]),
        (("--tool", "pytest"), ["The chart table test failed."]),
        (("--status", "ok"), []),
        (("--path", "boat/table.py"), ["The chart table has a new drawer."]),
        (("--path", "boat"), ["The chart table has a new drawer.", "The chart table test failed."]),
        (("--path", "boa"), []),
    ],
)  # fmt: skip
def test_evidence_is_found_by_kind_tool_status_and_path(home: Path, options: tuple[str, ...], found: list[str]) -> None:
    asked = run_memstate(home, "query", "Where is the chart table?", "--scope", "user:aya", *options, "--json")
    assert asked.code == 0, asked.stderr
    assert sorted(each["text"] for each in asked.document["evidence"]) == found


def test_a_server_lists_resources_page_by_page_to_whom_they_belong(own: Path) -> None:
    with served(open_store(own, {}), Options(poll_seconds=0.05)) as raw, MemoryClient(raw.url) as client:
        first = client.resources_page(scope="user:aya", limit=2)
        assert [each.uri for each in first.resources] == ["boat:/", "boat:/manual"]
        assert first.next_cursor
        assert [each.uri for each in client.resources(scope="user:aya", page_size=1)] == [
            "boat:/", "boat:/manual", "boat:/manual#2",
        ]  # fmt: skip
        assert [each.title for each in client.resources(roots=True, scope="user:ben")] == ["Ben's boat"]
        for day, (roots, _) in THEN.items():
            found = client.resources(roots=True, scope="user:ben", as_of=f"{day}T00:00:00Z", page_size=1)
            assert [(each.uri, each.title, each.children) for each in found] == roots

        async def browse(tools: Any) -> Any:
            given = {"uri": "boat:/log", "scope": "user:ben", "as_of": "2026-02-15T00:00:00Z"}
            return await tools.call_tool("memory_resources", given)

        assert [each["content"] for each in document(call(over_http(raw), browse))["resources"]] == ["Left."]
        [hit] = client.query("chart table", scope="user:aya", evidence_kinds=["tool_result"]).evidence
        assert (hit.tool, hit.status, hit.path) == ("pytest", "error", "boat/tests/table.py")


def test_items_are_written_one_by_one(own: Path) -> None:
    aya = ("--scope", "user:aya", "--at", "2026-03-02T00:00:00Z", "--json")
    for words in (
        ("upsert-resource", "boat:/log", "--title", "Log", "--content", "Left at noon.", "--parent", "boat:/"),
        ("upsert-session-state", "s-cli", "--goal", "Sail to Hel", "--working-set", "chart.pdf"),
        ("remember", "Aya is left-handed.", "--label", "persona"),
    ):
        done = run_memstate(own, "memory", *words, *aya)
        assert done.code == 0, done.stderr
        assert done.document["accepted"] == 1
    assert run_memstate(own, "memory", "upsert-session-state", "s-cli", "--status", "lost", *aya).code == 2
    night(own, [], "2026-03-03T02:00:00Z")
    assert pack(own)["text"].split("\n")[:4] == [
        "# Core memory",
        "- persona: Aya is left-handed. [1]",
        "# Active sessions",
        "- s-cli: Sail to Hel; working set: chart.pdf [2]",
    ]
    listed = run_memstate(own, "memory", "browse-resources", "--parent", "boat:/", "--json").document["resources"]
    assert "boat:/log" in [each["uri"] for each in listed]


def test_nothing_is_left_of_an_erased_session_and_resource(own: Path) -> None:
    done = run_memstate(own, "erase", "--session", "s-fresh", "--scope", "user:aya", "--yes")
    assert done.code == 0, done.stderr
    left = json.dumps(run_memstate(own, "export", "--json").document)
    assert "Book the late ferry" not in left
    assert "Wait for the yard" in left
