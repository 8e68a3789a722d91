"""Which shards a bounded checkout keeps: that of the night, those in progress, and the most recently used that fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from memstate_core.night.checkout.note import Note
from memstate_core.night.checkout.shards_here import Choice, ShardsHere, chosen, is_bounded, shard_of
from memstate_core.policy.settings import Settings, StoreSettings
from memstate_core.run.store import Store
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_core.storage.head import RemoteFile

SHARDS = ("s0", "s1", "s2", "s3")


def files(*shards: str, number: int = 1) -> list[RemoteFile]:
    """Ten bytes of snapshots for each shard, CURRENT, a manifest, and a file of the ledger."""
    names = [f"snapshots/{shard}/{number}/{name}" for shard in shards for name in ("graph.kuzu", "facts/edges.parquet")]
    small = [f"snapshots/{shard}/{name}" for shard in shards for name in ("CURRENT", f"{number}/manifest.json")]
    sized = [(name, 5) for name in names] + [(name, 1000) for name in [*small, "ledger/chain.jsonl"]]
    return [RemoteFile(name, size, f"{name} {number}", 0, 1) for name, size in sized]


def note(*used: str, absent: tuple[str, ...] = (), number: int = 1) -> Note:
    return Note(id="a", where="file:///b", files=files(*SHARDS, number=number), used=[*used], absent=[*absent])


def choice(tmp_path: Path, before: Note, shard: str, bound: int) -> Choice:
    return chosen(Home(tmp_path), before, files(*SHARDS), ShardsHere([shard], bound))


@pytest.mark.parametrize(
    ("bound", "absent"),
    [(0, ["s0", "s1", "s3"]), (19, ["s0", "s1", "s3"]), (20, ["s0", "s3"]), (30, ["s3"]), (40, [])],
)
def test_the_shards_stay_that_had_a_night_last(tmp_path: Path, bound: int, absent: list[str]) -> None:
    """CURRENT and manifests, which all have, do not count."""
    found = choice(tmp_path, note("s2", "s0", "s1"), "s2", bound)
    assert found == Choice(absent, ["s0", "s1", "s2"], absent)


def test_no_older_shard_stays_in_the_place_of_one_that_is_too_large(tmp_path: Path) -> None:
    before = note("s1", "s0")
    large = [structs.replace(file, size=50) if "/s0/" in file.path else file for file in before.files]
    found = chosen(Home(tmp_path), structs.replace(before, files=large), large, ShardsHere(["s2"], 30))
    assert found.absent == ["s0", "s1", "s3"]


def test_nothing_is_fetched_but_the_shard_of_the_night(tmp_path: Path) -> None:
    found = choice(tmp_path, note("s1", "s0", absent=("s0", "s2")), "s2", 1000)
    assert (found.absent, found.dropped) == (["s0"], [])
    outdated = choice(tmp_path, note("s1", "s0", number=2), "s2", 1000)
    assert (outdated.absent, outdated.dropped) == (["s0", "s1", "s3"], [])
    new = chosen(Home(tmp_path), Note(id="a", where="file:///b"), files(*SHARDS), ShardsHere(["s2"], 1000))
    assert new == Choice(["s0", "s1", "s3"], ["s2"], [])


def test_a_snapshot_that_was_removed_at_the_url_makes_no_shard_outdated(tmp_path: Path) -> None:
    before = note()
    two = structs.replace(before, files=[*before.files, *files(*SHARDS, number=2)])
    assert choice(tmp_path, two, "s2", 1000).absent == []


def test_a_shard_stays_whose_night_is_in_progress_here(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with exclusive(home.shard_lock("s0"), "its night"):
        home.begun_night("s0").touch()
        assert choice(tmp_path, note(), "s2", 0).absent == ["s1", "s3"]
    assert choice(tmp_path, note(), "s2", 0).absent == ["s0", "s1", "s3"], "the mark of a night that died"


def test_a_brief_command_keeps_what_is_here(tmp_path: Path) -> None:
    found = chosen(Home(tmp_path), note("s1", absent=("s3",)), files(*SHARDS), ShardsHere())
    assert found == Choice(["s3"], ["s1"], [])


@pytest.mark.parametrize(
    ("path", "shard"),
    [
        ("snapshots/s0/CURRENT", None),
        ("snapshots/s0/12/manifest.json", None),
        ("snapshots/layout.json", None),
        ("ledger/s0/12/graph.kuzu", None),
        ("snapshots/s0/12/graph.kuzu", "s0"),
        ("snapshots/s0/12/facts/manifest.json", "s0"),
    ],
)
def test_current_and_manifests_are_in_every_checkout(path: str, shard: str | None) -> None:
    assert shard_of(path) == shard


def test_a_checkout_is_whole_where_shards_have_their_nights_one_after_another(tmp_path: Path) -> None:
    kept = {"url": "file:///b", "shards": 4, "nights_at_once": 2, "checkout_mib": 1}
    for given in ({}, {"url": ""}, {"shards": 1}, {"nights_at_once": 1}, {"checkout_mib": 0}):
        store = Store(Home(tmp_path), Settings(store=StoreSettings.model_validate(kept | given)))
        assert is_bounded(store) == (not given), given
