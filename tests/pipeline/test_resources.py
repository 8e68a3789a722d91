"""The store as a resource of Dagster's runs: the lock and the memory budget last as long as the run."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import dagster as dg
import pytest

from memstate_core.model.errors import StoreLocked
from memstate_core.run.store import open_store
from memstate_core.state.lock import exclusive
from memstate_pipeline.resources import StoreResource


def data_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no limit that holds")
def test_a_run_has_the_memory_budget_and_the_lock_until_it_ends(tmp_path: Path) -> None:
    tmp_path.joinpath("memstate.toml").write_text("[store]\nmemory_mib = 65536\n")
    lock, before = open_store(tmp_path).home.lock, data_limit()
    opened, context = StoreResource(home=str(tmp_path)), dg.build_init_resource_context()
    opened.setup_for_execution(context)
    assert 65536 << 20 <= data_limit() < 2 * 65536 << 20
    with pytest.raises(StoreLocked), exclusive(lock, "another"):
        pass
    opened.teardown_after_execution(context)
    assert data_limit() == before
    with exclusive(lock, "another"):
        pass
