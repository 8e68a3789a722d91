"""`memstate conformance`: the naive stores and a system of one's own through the command line, and memstate itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memstate_core.conformance.report import CONDITIONS
from tests.pipeline.conftest import Memstate

OWN = "tests.core.conformance.perfect"


def test_the_naive_stores_side_by_side(memstate: Memstate) -> None:
    run = ("conformance", "--adapter", "overwrite", "--adapter", "append-only", "--turns", "150", "--seed", "5")
    found = memstate(*run, "--json")
    assert (found.code, found.document["missed"]) == (0, [])
    assert (found.document["turns"], found.document["nights"], found.document["bound"]) == (150, 6, 7)
    assert [each["system"] for each in found.document["systems"]] == ["overwrite", "append-only"]
    for system in found.document["systems"]:
        assert set(system["conditions"]) == set(CONDITIONS)
        assert system["least"] == min(each["score"] for each in system["conditions"].values())
        for each in system["conditions"].values():
            assert each["checked"] == sum(kind["checked"] for kind in each["kinds"].values()) > 0
            assert each["score"] == round(each["held"] / each["checked"], 4)
    assert memstate(*run, "--json").document == found.document
    table = memstate(*run).stdout
    assert "C3  dependency consistency" in table
    assert "the system offers no review" in table


def test_a_score_below_the_least_one_exits_with_4(memstate: Memstate) -> None:
    found = memstate("conformance", "--adapter", "append-only", "--turns", "100", "--min-score", "0.5", "--json")
    assert found.code == 4
    missed = [line.partition(" is ")[0] for line in found.document["missed"]]
    assert missed == [f"append-only: {name}" for name in ("C2", "C3", "C5", "C6")]


def test_a_system_of_ones_own(memstate: Memstate) -> None:
    own = ("conformance", "--turns", "50", "--json", "--adapter")
    [system] = memstate(*own, f"{OWN}:Perfect").document["systems"]
    assert (system["system"], system["conditions"]["C1"]["score"]) == ("perfect", 1)
    for name, expected in {
        f"{OWN}:Unfinished": "it has no ingest, advance, ask, expected name, ingest, advance, ask",
        f"{OWN}:Nobody": "has no attribute 'Nobody'; expected a module that can be imported here",
        "nowhere:make": "No module named 'nowhere'; expected a module",
        "mine": "expected memstate, overwrite, append-only, mem0, or MODULE:FACTORY",
    }.items():
        refused = memstate(*own, name)
        assert refused.code == 2
        assert expected in refused.document["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("absent", "adapter", "extras"), [("httpx2", "memstate", "client,serve"), ("mem0", "mem0", "conformance")]
)
def test_a_missing_package_is_named_with_the_extras_that_bring_it(absent: str, adapter: str, extras: str) -> None:
    program = f"import sys; sys.modules[{absent!r}] = None; from memstate_pipeline.cli.main import main; main()"
    asked = [sys.executable, "-c", program, "conformance", "--turns", "1", "--adapter", adapter]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"pip install 'memstate[{extras}]'" in done.stderr


def test_a_server_and_its_nights_go_together(memstate: Memstate) -> None:
    assert memstate("conformance", "--url", "http://127.0.0.1:1").code == 2
    assert memstate("conformance", "--night", "true").code == 2
    both = ("conformance", "--url", "http://127.0.0.1:1", "--night", "true", "--adapter", "overwrite")
    assert memstate(*both).code == 2


@pytest.mark.slow
def test_memstate_keeps_every_condition(memstate: Memstate) -> None:
    """A short trajectory; the benchmark takes 500 turns."""
    found = memstate("conformance", "--turns", "75", "--seed", "26", "--min-score", "1", "--json")
    [system] = found.document["systems"]
    failed = [one for each in system["conditions"].values() for one in each["examples"]]
    assert (found.code, failed) == (0, []), found.stderr
    assert system["system"] == "memstate"
    assert min(each["checked"] for each in system["conditions"].values()) > 0


@pytest.mark.slow
def test_a_running_server_by_its_address(memstate: Memstate, tmp_path: Path) -> None:
    from tests.core.serve.conftest import serving_process

    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text("[policy]\nmax_active_topics = 4\ntopic_count_soft_limit = 4\n")
    night = f"{sys.executable} -m memstate_pipeline --home {home} maintain --now {{now}}"
    with serving_process(home) as (client, _):
        run = ("conformance", "--url", client.url, "--settle", "0", "--turns", "20", "--json", "--night")
        found = memstate(*run, night)
        broken = memstate(*run, "exit 3")
    [system] = found.document["systems"]
    assert (system["conditions"]["C1"]["score"], system["conditions"]["C2"]["score"]) == (1, 1)
    assert broken.code == 1
    assert "ended with exit code 3, expected 0; see what --night runs" in broken.document["error"]["message"]
