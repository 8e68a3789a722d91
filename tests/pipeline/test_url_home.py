"""A home that is named by the URL of its store: for every machine, with the laws of a home, on each kind of storage."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import commands
from tests.pipeline.conftest import NIGHT, clean_environment
from tests.pipeline.sharded_homes import rows_of
from tests.pipeline.test_checkout import NIGHTS, drop

pytestmark = pytest.mark.slow


def done(machine: Path, *arguments: str, **given: str) -> dict[str, Any]:
    """The document of a command that succeeds on a machine, whose folder has the user's data."""
    given |= {"XDG_DATA_HOME": str(machine), "MEMSTATE_STORE_LEASE_SECONDS": "1"}
    answer = commands.run([*arguments, "--json"], clean_environment(**given))
    assert answer.returncode == 0, answer.stderr
    return dict(json.loads(answer.stdout))


@pytest.mark.parametrize("url", ["s3"], indirect=True)
def test_a_url_names_the_home_of_every_machine(url: str, tmp_path: Path) -> None:
    """Each has a checkout of its own among the user's data, which its first command fetches."""
    aya, ben = tmp_path / "aya", tmp_path / "ben"
    drop(tmp_path, 1)
    done(aya, "--home", url, "import", str(tmp_path / "inbox" / "1.jsonl"))
    done(aya, "maintain", "--now", NIGHTS[0], MEMSTATE_HOME=url)
    (found,) = done(ben, "query", "yard", MEMSTATE_HOME=url)["candidates"]
    assert found["title"] == "Yard"
    assert done(ben, "--home", url, "status")["checkout"]["url"] == url
    night = done(ben, "--home", url, "maintain", "--now", NIGHTS[1])
    assert done(aya, "--home", url, "pull")["state_hash"] == night["state_hash"]


def dump(path: Path, rows: Iterable[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_order_splitting_and_repetition_of_dumps_do_not_matter(url: str, tmp_path: Path) -> None:
    """Laws L1 and L2 of a store at a URL, whichever machine imports."""
    aya, ben = tmp_path / "aya", tmp_path / "ben"
    rows = [row for number in range(3) for row in rows_of(number) if "topic_key" in row]
    whole = dump(tmp_path / "whole.jsonl", rows)
    hashing = {"MEMSTATE_EMBEDDING_MODEL": "hashing"}
    hashes, homes = [], [str(tmp_path / "alone"), f"{url}/repeated", f"{url}/split"]
    shuffled = Random(7).sample(rows, len(rows))
    parts = [dump(tmp_path / f"part-{n}.jsonl", shuffled[n::3]) for n in range(3)]
    given = [[(aya, whole)], [(aya, whole), (aya, whole), (ben, whole)]]
    given.append([(aya, parts[2]), (ben, parts[0]), (aya, parts[1]), (ben, parts[2])])
    for home, imports in zip(homes, given, strict=True):
        counted = [
            done(machine, "--home", home, "import", path, "--now", NIGHT, **hashing) for machine, path in imports
        ]
        assert sum(each["accepted"] for each in counted) == len(rows)
        hashes.append(done(aya, "--home", home, "maintain", "--now", NIGHT, **hashing)["state_hash"])
        again = done(ben, "--home", home, "import", whole, "--now", NIGHT, **hashing)
        assert (again["accepted"], again["duplicate"]) == (0, len(rows))
        hashes.append(done(ben, "--home", home, "rebuild", **hashing)["state_hash"])
    assert len(set(hashes)) == 1, hashes


def test_a_backup_is_restored_into_a_folder(tmp_path: Path) -> None:
    given = clean_environment(XDG_DATA_HOME=str(tmp_path / "data"))
    refused = commands.run(["--home", f"file://{tmp_path}/url", "restore-backup", str(tmp_path)], given)
    assert refused.returncode == 2
    assert "expected a folder. Set store.url in it" in " ".join(refused.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []
