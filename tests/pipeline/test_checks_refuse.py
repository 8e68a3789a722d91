"""A failed condition stops the run before it publishes; the served snapshot stays."""

from pathlib import Path

import pytest

from tests import warm
from tests.pipeline.conftest import NIGHT, clean_environment, run_memstate

FAIL_C4 = """
import sys
import polars as pl
from memstate_core.night import checks

checks.provenance_preservation = lambda graph, run: checks.Check(
    "C4", pl.DataFrame({"subject": ["a topic"], "problem": ["a value without evidence"]})
)
sys.argv = ["memstate", "--home", sys.argv[1], "maintain", "--now", sys.argv[2], "--json"]
from memstate_pipeline.cli.main import main
main()
"""


@pytest.mark.slow
def test_a_failed_check_exits_4_and_publishes_nothing(tmp_path: Path) -> None:
    home, dump = tmp_path / "home", tmp_path / "one.jsonl"
    dump.write_text('{"title": "Yard", "fields": [{"name": "gate", "value": "shut"}]}\n')
    assert run_memstate(home, "import", str(dump)).code == 0
    answer = warm.run(["-c", FAIL_C4, str(home), NIGHT], clean_environment())
    assert answer.returncode == 4, answer.stderr
    assert "C4_provenance_preservation" in answer.stdout
    assert run_memstate(home, "status", "--json").document["snapshot"] is None
    assert run_memstate(home, "maintain", "--now", NIGHT).code == 0
