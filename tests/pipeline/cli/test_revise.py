"""Manual revision on the command line: merges, undo, review, confirm."""

from __future__ import annotations

import json
import os
import pty
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.corrections import correct
from memstate_core.run.store import open_store
from memstate_core.serve.runs import runs
from memstate_core.state.fold.decisions import judgements
from memstate_core.state.lock import exclusive
from tests import warm
from tests.core.frames import filled
from tests.core.revise.matching.people import observations, people
from tests.pipeline.conftest import NIGHT, Answer, Memstate, clean_environment, run_memstate

pytestmark = pytest.mark.slow

ROWS: list[dict[str, Any]] = [
    {"topic_key": "yard", "title": "Old Ferry Yard", "fields": [{"name": "gate", "value": "shut"}]},
    {"topic_key": "budget", "title": "Budget of the spring", "edges": [{"to_topic_key": "yard", "kind": "part_of"}]},
    {"topic_key": "tree", "title": "Serviceberry", "summary": "Chosen by the children"},
]


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three unrelated topics; tests copy it."""
    home = tmp_path_factory.mktemp("revise") / "home"
    imported(home, ROWS)
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    return home


@pytest.fixture
def home(first_night: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first_night, tmp_path / "home"))


@pytest.fixture
def memstate(home: Path) -> Memstate:
    return lambda *arguments, **environment: run_memstate(home, *arguments, **environment)


def imported(home: Path, rows: list[dict[str, Any]]) -> None:
    home.mkdir(exist_ok=True)
    dump = home / "dump.jsonl"
    said = {"scope": {"type": "user", "id": "ines"}, "observed_at": "2026-04-01T00:00:00Z"}
    dump.write_text("".join(json.dumps(said | row) + "\n" for row in rows))
    assert run_memstate(home, "import", str(dump), "--now", "2026-04-05T00:00:00Z").code == 0


def exported(home: Path) -> list[dict[str, Any]]:
    """Every record, without the review queue, which is not part of the state."""
    records = run_memstate(home, "export", "--json").document["topics"]
    return [{name: value for name, value in row.items() if name not in ("stale", "warnings")} for row in records]


def topics(home: Path) -> dict[str, str]:
    """Ids by the first word of the title."""
    return {record["title"].split()[0]: record["id"] for record in exported(home)}


def pages_of(home: Path, answer: dict[str, Any]) -> tuple[list[str], dict[str, int], set[str], int]:
    """What the page of a correction says: its decisions, counts, the titles that they name, and how many merges."""
    (page,) = answer["reports"]
    document = json.loads(Path(page).with_suffix(".json").read_text())
    assert (document["run_id"], document["snapshot"]) == (answer["run_id"], answer["snapshot"])
    assert (len(document["checks"]), all(check["passed"] for check in document["checks"])) == (6, True)
    listed = {run["run_id"]: run["counts"] for run in runs(open_store(home), 9)}
    assert listed[answer["run_id"]] == document["counts"]
    decided, html = document["decisions"], Path(page).read_text()
    titles = {row[name] for row in decided for name in ("title", "other_title")} - {None}
    assert all(title in html for title in titles)
    assert Path(page).name in (home / "reports" / "index.html").read_text()
    return [row["kind"] for row in decided], document["counts"], titles, len(document["merges"])


def answered(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.stderr
    return dict(answer.document)


def test_a_merge_that_was_undone_leaves_the_store_that_never_merged(home: Path, memstate: Memstate) -> None:
    before, never = memstate("status", "--json").document["state_hash"], exported(home)
    ids = topics(home)
    pair = f"{ids['Serviceberry']}:{ids['Old']}"
    merged = answered(memstate("review", "--decide", f"{pair}=same", "--now", NIGHT, "--json"))
    assert merged["state_hash"] != before
    (merge,) = answered(memstate("merges", "--json"))["merges"]
    assert {merge["dropped"]["id"], merge["survivor"]["id"]} == {ids["Serviceberry"], ids["Old"]}
    assert (merge["run_id"], merge["undone"], merge["probability"]) == (merged["run_id"], False, 1.0)
    undone = answered(memstate("undo", merge["id"], "--now", NIGHT, "--json"))
    assert pages_of(home, merged) == (
        ["same", "merged"],
        {"judged": 1, "merges": 1},
        {"Serviceberry", "Old Ferry Yard"},
        1,
    )
    assert pages_of(home, undone) == (["unmerged"], {"unmerged": 1}, {"Serviceberry", "Old Ferry Yard"}, 0)
    assert undone["topic"]["id"] == merge["dropped"]["id"]
    assert (undone["state_hash"], undone["snapshot"], exported(home)) == (before, "s0/3", never)
    again = memstate("undo", merge["dropped"]["id"], "--json")
    assert (again.code, again.document["error"]["type"]) == (1, "MergeUndone")
    assert memstate("merges").stdout == "no merges\n"
    assert "undone 2026-04-06" in memstate("merges", "--all").stdout
    assert answered(memstate("rebuild", "--json"))["state_hash"] == before


def test_a_pair_judged_different_stays_so_through_a_rebuild(home: Path, memstate: Memstate, tmp_path: Path) -> None:
    ids = topics(home)
    file = tmp_path / "verdicts.jsonl"
    file.write_text(json.dumps({"a": ids["Old"], "b": ids["Budget"], "verdict": "different"}) + "\n\n")
    answer = answered(memstate("review", "--file", str(file), "--json"))
    assert [row["verdict"] for row in answer["decided"]] == ["different"]
    shutil.rmtree(home / "snapshots")
    assert answered(memstate("rebuild", "--json"))["state_hash"] == answer["state_hash"]
    transitions = open_store(home).ledger.scan("transitions").sort("seq").collect()
    pair = sorted((ids["Old"], ids["Budget"]))
    assert judgements(transitions).rows() == [(*pair, "different")]
    assert memstate("merges", "--json").document == {"merges": []}


def test_a_file_of_verdicts_can_be_given_again_when_a_crash_left_some_of_them_recorded(
    home: Path, memstate: Memstate, tmp_path: Path
) -> None:
    ids, file = topics(home), tmp_path / "verdicts.jsonl"
    pairs = [("Old", "Budget", "same"), ("Old", "Serviceberry", "different")]
    file.write_text("".join(json.dumps({"a": ids[a], "b": ids[b], "verdict": v}) + "\n" for a, b, v in pairs))
    answered(memstate("review", "--decide", f"{ids['Old']}:{ids['Budget']}=same", "--json"))
    answer = answered(memstate("review", "--file", str(file), "--json"))
    assert [row["verdict"] for row in answer["decided"]] == ["different"]
    given = ("review", "--decide", f"{ids['Budget']}:{ids['Old']}=same")
    assert answered(memstate(*given, "--json")) == {"decided": []}
    assert "no verdict was recorded: what was given is recorded already" in memstate(*given).stdout
    assert memstate("status", "--json").document["snapshot"] == "s0/3"


def test_undo_creates_no_missing_home(tmp_path: Path) -> None:
    answer = run_memstate(tmp_path / "nowhere", "undo", "x", "--json")
    assert (answer.code, answer.document["error"]["type"]) == (1, "StoreNotFound")
    assert not (tmp_path / "nowhere").exists()


def test_different_is_refused_for_what_is_merged_with_the_way_out(home: Path, memstate: Memstate) -> None:
    ids = topics(home)
    pair = f"{ids['Budget']}:{ids['Old']}"
    answer = answered(memstate("review", "--decide", f"{pair}=same", "--now", NIGHT, "--json"))
    refused = memstate("review", "--decide", f"{pair}=different", "--json")
    (dropped,) = (row["dropped"]["id"] for row in memstate("merges", "--json").document["merges"])
    assert (refused.code, refused.document["error"]["type"]) == (1, "VerdictRefused")
    assert f"`memstate undo {dropped}`" in refused.stderr
    assert memstate("status", "--json").document["state_hash"] == answer["state_hash"]
    assert memstate("undo", dropped).stdout.startswith("unmerged: ")


@pytest.mark.parametrize("verdict", ["same", "different", "skip"])
def test_a_topic_has_no_verdict_with_itself(home: Path, memstate: Memstate, verdict: str) -> None:
    topic = topics(home)["Old"]
    refused = memstate("review", "--decide", f"{topic}:{topic}={verdict}", "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "VerdictRefused")
    assert "it is one id given twice; name two topics" in refused.document["error"]["message"]


def test_merges_are_asked_for_and_a_verdict_undoes_one(tmp_path: Path) -> None:
    home, twice = tmp_path / "home", {"title": "Quartz lagoon harvest", "summary": "Signing at the harbour office"}
    owned = twice | {"placement": "new_topic", "fields": [{"name": "owner", "value": "Aya"}]}
    imported(home, [*ROWS, owned | {"observation_id": "one"}, owned | {"observation_id": "two"}])
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    listed = run_memstate(home, "review", "--json").document
    (pair,), (checks,) = listed["merged"], listed["spot_checks"]
    assert (checks["merges"], checks["asked"], checks["answered"], checks["precision"]) == (1, 1, 0, None)
    assert {pair[side]["title"] for side in ("a", "b")} == {twice["title"]}
    named = f"{pair['a']['id']}:{pair['b']['id']}"
    text = run_memstate(home, "review").stdout
    assert named in text
    assert "merged 2026-" in text
    assert "right?" in text
    verdict = run_memstate(home, "review", "--decide", f"{named}=different", "--json").document
    assert verdict["decided"] == [{"a": pair["a"]["id"], "b": pair["b"]["id"], "verdict": "different"}]
    assert run_memstate(home, "merges", "--json").document["merges"] == []
    text = run_memstate(home, "review").stdout
    assert "precision 0.000, between 0.000 and 0.000 (95 %); 1 of 1 spot checks of 1 merges, 1 wrong" in text
    assert run_memstate(home, "review", "--json").document["merged"] == []


def test_confirm_ends_a_stale_mark(home: Path, memstate: Memstate) -> None:
    imported(home, [{"topic_key": "yard", "observed_at": "2026-04-04T00:00:00Z", "summary": "It is flooded"}])
    assert memstate("maintain", "--now", NIGHT).code == 0
    budget = topics(home)["Budget"]
    stale = memstate("topic", budget, "--json").document["stale"]
    assert set(stale) == {"reason", "cause_topic_id", "since"}
    assert [row["topic_id"] for row in answered(memstate("confirm", "--json"))["stale"]] == [budget]
    answer = answered(memstate("confirm", budget, "--now", NIGHT, "--json"))
    assert answer["confirmed"] == [budget]
    assert memstate("topic", budget, "--json").document["stale"] is None
    assert answered(memstate("rebuild", "--json"))["state_hash"] == answer["state_hash"]
    assert memstate("confirm").stdout == "no topic is stale\n"
    assert memstate("confirm", budget, "--json").document["error"]["type"] == "NotStale"


def test_a_terminal_asks_for_a_verdict_on_each_pair(home: Path, memstate: Memstate) -> None:
    ids = topics(home)
    dull, informative = (tuple(sorted((ids["Old"], ids[other]))) for other in ("Budget", "Serviceberry"))
    suggest(home, {dull: 0.2, informative: 0.8})
    listed = answered(memstate("review", "--limit", "1", "--json"))
    assert (listed["open"], [pair["value"] for pair in listed["pairs"]]) == (2, [0.8])
    assert listed["pairs"][0]["probability"] == 0.4
    piped = memstate("review").stdout
    assert piped.index("Serviceberry") < piped.index("Budget of the spring")
    assert "open pairs: 2" in piped
    shown = on_terminal(home, b"x\nk\nd\n")
    assert "pair 2 of 2" in shown
    assert "verdicts recorded: 2" in shown
    verdicts = judgements(open_store(home).ledger.scan("transitions").sort("seq").collect())
    assert sorted(verdicts.rows()) == sorted([(*dull, "different"), (*informative, "skip")])
    assert answered(memstate("review", "--json"))["pairs"][0]["skipped"] is True
    assert "no verdict was recorded" in on_terminal(home, b"q\n")


def test_review_says_how_many_answers_are_missing_until_nights_merge_the_rest(tmp_path: Path) -> None:
    home, listed = tmp_path / "home", observations(people(200, 75), "person")
    rows = [{"observation_id": name, "placement": "new_topic"} | row for name, row in listed.items()]
    imported(home, rows)
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    found = run_memstate(home, "review", "--json").document
    assert found["confirmation"] == [{"scope": "user:ines", "likely": 75, "answers": 59, "others": 16}]
    line = (
        "after at least 59 more answers `same` in the order of this list, "
        "nights merge up to 16 of the 75 likely pairs that wait"
    )
    assert f"user:ines: {line}\n" in run_memstate(home, "review").stdout
    assert line in on_terminal(home, b"s\nq\n")
    ends = [
        [pair[side]["id"] for side in "ab"]
        for pair in run_memstate(home, "review", "--limit", "58", "--json").document["pairs"]
    ]
    options = [option for a, b in ends for option in ("--decide", f"{a}:{b}=same")]
    assert run_memstate(home, "review", *options).code == 0
    line = "your answers confirm up to 16 of the 16 likely pairs that wait; the next night merges them"
    assert f"user:ines: {line}\n" in run_memstate(home, "review").stdout
    night = run_memstate(home, "maintain", "--now", "2026-04-07T02:00:00Z")
    assert night.code == 0
    assert run_memstate(home, "review", "--json").document["confirmation"] == []
    confirmed = [
        merge for merge in run_memstate(home, "merges", "--json").document["merges"] if "answers" in merge["reason"]
    ]
    assert len(confirmed) == 16


def test_a_pair_with_different_keys_says_why_it_was_not_merged(home: Path, memstate: Memstate) -> None:
    ids = topics(home)
    suggest(home, {tuple(sorted((ids["Old"], ids["Budget"]))): 0.8})
    (pair,) = answered(memstate("review", "--json"))["pairs"]
    assert {side["id"]: side["keys"] for side in (pair["a"], pair["b"])} == {
        ids["Old"]: ["yard"],
        ids["Budget"]: ["budget"],
    }
    shown = memstate("review").stdout
    assert "not merged without a verdict, since observations name them by different keys" in shown
    assert {"yard", "budget"} < {*next(line for line in shown.splitlines() if line.startswith("  key")).split()}


def suggest(home: Path, pairs: dict[tuple[str, ...], float]) -> None:
    """Records suggestions as a night would."""
    features = [{"name": "title", "value": 0.5, "weight": -0.4}]
    said = {"probability": 0.4, "weight": -0.4, "features": features}
    rows = [
        {"kind": "pair_suggested", "scope": "user:ines", "topic_id": a}
        | {"payload_json": json.dumps(said | {"a": a, "b": b, "value": value})}
        for (a, b), value in pairs.items()
    ]
    night = datetime(2026, 4, 6, 2, tzinfo=UTC)
    correct(open_store(home), "s0", "night", night, filled(pl.DataFrame(rows), DECISION), "similar")


def on_terminal(home: Path, typed: bytes) -> str:
    """The output of `memstate review` on a terminal with the given input."""
    keyboard, screen = pty.openpty()
    command = ["-m", "memstate_pipeline", "--home", str(home), "review", "--now", NIGHT]
    with os.fdopen(screen, "w+b", buffering=0) as terminal:
        started = warm.Process(command, clean_environment(), terminal, terminal, terminal)
    os.write(keyboard, typed)
    shown = b"".join(read_until_closed(keyboard)).decode()
    assert started.wait(timeout=120) == 0, shown
    os.close(keyboard)
    return shown


def read_until_closed(handle: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(handle, 4096):
            yield chunk
    except OSError:
        return


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("undo", "nobody"), 1, "memstate merges"),
        (("review", "--decide", "nobody:else=same"), 1, "no topic has the id 'nobody'"),
        (("review", "--decide", "a:b=perhaps"), 2, "expected A:B=VERDICT"),
        (("review", "--decide", "a=same"), 2, "expected A:B=VERDICT"),
        (("review", "--file", "missing.jsonl"), 2, "missing.jsonl cannot be read"),
        (("confirm", "nobody"), 1, "memstate confirm"),
    ],
)
def test_impossible_corrections_name_the_remedy(
    arguments: tuple[str, ...], code: int, said: str, first_night: Path
) -> None:
    answer = run_memstate(first_night, *arguments)
    assert answer.code == code
    assert said in " ".join(answer.stderr.replace("│", " ").split())


@pytest.mark.parametrize("arguments", [("undo", "x"), ("confirm", "x"), ("review", "--decide", "a:b=same")])
def test_a_locked_store_exits_3(arguments: tuple[str, ...], home: Path) -> None:
    with exclusive(home / "run.lock", "the test that holds it"):
        answer = run_memstate(home, *arguments, "--json")
    assert answer.code == 3
    assert "the test that holds it" in answer.document["error"]["holder"]
