"""A home that is named by the URL of its store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import commands
from tests.pipeline.conftest import clean_environment
from tests.pipeline.test_checkout import NIGHTS, drop

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("url", ["s3"], indirect=True)
def test_a_url_names_the_home_of_every_machine(url: str, tmp_path: Path) -> None:
    """Each has a checkout of its own among the user's data, which its first command fetches."""

    def done(machine: str, *arguments: str, **given: str) -> dict[str, Any]:
        given |= {"XDG_DATA_HOME": str(tmp_path / machine), "MEMSTATE_STORE_LEASE_SECONDS": "1"}
        answer = commands.run([*arguments, "--json"], clean_environment(**given))
        assert answer.returncode == 0, answer.stderr
        return dict(json.loads(answer.stdout))

    drop(tmp_path, 1)
    done("aya", "--home", url, "import", str(tmp_path / "inbox" / "1.jsonl"))
    done("aya", "maintain", "--now", NIGHTS[0], MEMSTATE_HOME=url)
    (found,) = done("ben", "query", "yard", MEMSTATE_HOME=url)["candidates"]
    assert found["title"] == "Yard"
    assert done("ben", "--home", url, "status")["checkout"]["url"] == url
    night = done("ben", "--home", url, "maintain", "--now", NIGHTS[1])
    assert done("aya", "--home", url, "pull")["state_hash"] == night["state_hash"]


def test_a_backup_is_restored_into_a_folder(tmp_path: Path) -> None:
    given = clean_environment(XDG_DATA_HOME=str(tmp_path / "data"))
    refused = commands.run(["--home", f"file://{tmp_path}/url", "restore-backup", str(tmp_path)], given)
    assert refused.returncode == 2
    assert "expected a folder. Set store.url in it" in " ".join(refused.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []
