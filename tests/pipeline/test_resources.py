"""The lock and the memory budget last as long as a run of Dagster, or a command that writes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memstate_core.ingest import importer
from memstate_core.model.errors import StoreLocked
from memstate_core.run.store import open_store
from memstate_core.state.lock import exclusive
from memstate_pipeline.cli.main import main
from memstate_pipeline.cli.shared.errors import described
from memstate_pipeline.resources import StoreResource
from memstate_pipeline.writers import holding


def data_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no limit that holds")


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


def test_commands_that_write_have_the_memory_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("memstate.toml").write_text("[store]\nmemory_mib = 65536\n")
    (dump := tmp_path / "dump.jsonl").write_text('{"text": "one"}\n')
    store, before, limits = open_store(tmp_path), data_limit(), []
    with holding(store, "a correction"):
        limits.append(data_limit())
    real = importer.import_paths

    def watched(*given: Any, **named: Any) -> Any:
        limits.append(data_limit())
        return real(*given, **named)

    monkeypatch.setattr(importer, "import_paths", watched)
    monkeypatch.setattr(sys, "argv", ["memstate", "--home", str(tmp_path), "import", str(dump)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, store.ledger.count("evidence")) == (None, 1)
    assert [65536 << 20 <= limit < 2 * 65536 << 20 for limit in limits] == [True, True]
    assert data_limit() == before
    assert "store.memory_mib" in described(MemoryError()).message
