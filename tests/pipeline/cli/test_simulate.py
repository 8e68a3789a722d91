"""`memstate simulate` on a real store: its table, its JSON, its plot, and that it changes nothing."""

from __future__ import annotations

import hashlib
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from memstate_core.state.lock import exclusive
from tests.pipeline.conftest import Memstate, run_memstate

pytestmark = pytest.mark.slow

KEEN = "[policy]\ntopic_count_soft_limit = 0\nsalience_half_life_days = 2.0\n"
RULE = '[[policy.rules]]\nname = "all"\non = "nightly"\nwhen = "idle_days > 20"\ndo = "archive"\n'
NIGHT = "2026-04-06T02:00:00Z"
LATER = "2026-04-11T02:00:00Z"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three topics after a night; one of them, in the end archived by KEEN, is accessed a day later."""
    home = tmp_path_factory.mktemp("simulate") / "home"
    home.mkdir()
    said = {"scope": {"type": "user", "id": "ines"}}
    rows = [
        said | {"topic_key": key, "title": title, "observed_at": at, "fields": [{"name": "gate", "value": "shut"}]}
        for key, title, at in (
            ("yard", "Old Ferry Yard", "2026-04-05T00:00:00Z"),
            ("tree", "Serviceberry", "2026-03-01T00:00:00Z"),
            ("wall", "Dry stone wall", "2026-02-01T00:00:00Z"),
        )
    ]
    (home / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run_memstate(home, "import", str(home / "dump.jsonl"), "--now", "2026-04-05T00:00:00Z").code == 0
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
    topics = run_memstate(home, "export", "--json").document["topics"]
    (tree,) = [topic["id"] for topic in topics if topic["title"] == "Serviceberry"]
    assert run_memstate(home, "feedback", tree, "--used", "--now", "2026-04-10T09:00:00Z").code == 0
    assert run_memstate(home, "maintain", "--now", LATER).code == 0
    return home


@pytest.fixture
def memstate(home: Path) -> Memstate:
    return lambda *arguments, **environment: run_memstate(home, *arguments, **environment)


@pytest.fixture
def keen(tmp_path: Path) -> str:
    path = tmp_path / "keen.toml"
    path.write_text(KEEN)
    return str(path)


def files_of(home: Path) -> dict[str, str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_past_nights_are_replayed_under_both_policies(memstate: Memstate, keen: str, home: Path) -> None:
    before = files_of(home)
    answer = memstate("simulate", "--policies", keen, "--days", "6", "--now", LATER, "--json")
    assert answer.code == 0, answer.stderr
    document = answer.document
    assert (document["mode"], document["from"], document["to"]) == ("replay", "2026-04-05T02:00:00Z", LATER)
    assert [night["active"] for night in document["present"]["nights"]] == [3] * 6
    assert [night["archived"] for night in document["other"]["nights"]] == [2, 2, 2, 2, 2, 1]
    assert document["other"]["totals"] | {"archivals": 2, "returns": 1, "missed": 1} == document["other"]["totals"]
    (missed,) = document["other"]["most_missed"]
    assert (missed["title"], missed["times"]) == ("Serviceberry", 1)
    assert [topic["title"] for topic in document["would_go"]["topics"]] == ["Dry stone wall"]
    assert document["would_come_back"]["count"] == 0
    assert files_of(home) == before


def test_it_needs_no_lock(memstate: Memstate, keen: str, home: Path) -> None:
    with exclusive(home / "run.lock", "a night"):
        assert memstate("simulate", "--policies", keen, "--days", "1", "--now", LATER).code == 0


def test_text_output_is_a_table_of_a_few_nights(memstate: Memstate, keen: str) -> None:
    answer = memstate("simulate", "--policies", keen, "--days", "40", "--now", LATER).stdout.splitlines()
    assert answer[0] == "replay of the past 40 days, 2026-03-02T02:00:00Z to 2026-04-11T02:00:00Z"
    table = answer[answer.index(next(line for line in answer if line.startswith("night"))) :]
    rows = table[: next(place for place, line in enumerate(table) if line.startswith("difference")) + 1]
    assert len(rows) == 1 + 15 + 2
    assert len({len(row) for row in rows}) == 1
    assert rows[-3].split()[:4] == ["2026-04-11", "3", "|", "2"]
    assert rows[-2].startswith("total")
    assert any("“Serviceberry”" in line for line in answer)


def test_coming_days_are_projected_on_request_or_when_nothing_is_new(memstate: Memstate, keen: str) -> None:
    asked = memstate("simulate", "--policies", keen, "--days", "4", "--now", LATER, "--forward", "--json").document
    assert (asked["mode"], asked["from"], asked["to"]) == ("projection", LATER, "2026-04-15T02:00:00Z")
    late = memstate("simulate", "--policies", keen, "--days", "4", "--now", "2027-04-11", "--json").document
    assert late["mode"] == "projection"
    assert late["present"]["nights"][0]["at"] == "2027-04-12T00:00:00Z"


@pytest.mark.parametrize("name", ["plot.svg", "deep/plot.html"])
def test_the_plot_is_a_file_of_its_own(name: str, memstate: Memstate, keen: str, tmp_path: Path) -> None:
    path = tmp_path / name
    answer = memstate("simulate", "--policies", keen, "--days", "6", "--now", LATER, "--plot", str(path))
    assert answer.code == 0, answer.stderr
    assert path.as_uri() in answer.stdout
    text = path.read_text()
    svg = ElementTree.fromstring(text[text.index("<svg") :])
    words = " ".join(svg.itertext())
    for label in ("active, present policy", "archived, other policy", "missed accesses", "replay, 2026-04-05"):
        assert label in words


def test_wrong_policies_and_options_are_refused(memstate: Memstate, keen: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(RULE.replace("idle_days", "idle_weeks"))
    answer = memstate("simulate", "--policies", str(wrong), "--days", "3")
    assert answer.code == 2
    assert "wrong.toml" in answer.stderr
    assert "idle_weeks" in answer.stderr
    assert memstate("simulate", "--policies", keen, "--days", "0").code == 2
    assert "plot.pdf" in memstate("simulate", "--policies", keen, "--days", "1", "--plot", "plot.pdf").stderr
    nowhere = run_memstate(tmp_path / "nowhere", "simulate", "--policies", keen, "--days", "3", "--json")
    assert nowhere.document["error"]["type"] == "StoreNotFound"
