"""Nights of shards to which nothing was written may be skipped: a twin store that has them all gets the same state."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.model.text import parse_moment
from memstate_core.night.nights_due import nights_due
from memstate_core.night.rebuild import rebuild
from memstate_core.run.run import pending_path
from memstate_core.run.store import Store, open_store
from memstate_core.state.current import current_snapshot
from memstate_core.state.fold.decisions import PUBLISHED, SET_ASIDE
from memstate_core.state.snapshots import Snapshot
from tests.pipeline.conftest import run_memstate, shared
from tests.pipeline.sharded_homes import SCOPES, begun, decisions, done, imported, rows_of, topics

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]

SKIPPING = {"MEMSTATE_SCHEDULE_SKIP_UNCHANGED_DAYS": "30"}
SAID = ("shard", "scope", "kind", "topic_id", "payload_json", "reason", "at", "evidence_ids")
"""What two ledgers with the same decisions have in common; run ids and numbers differ."""


@pytest.fixture(scope="session")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two shards after two nights, the second of which merged in every scope."""

    def make(home: Path) -> None:
        begun(home, 2)
        for night in range(2):
            imported(home, night)
            done(home, "maintain", "--now", when(night))

    return shared(tmp_path_factory, "two-nights", make)


def when(night: int) -> str:
    return f"2026-04-{night + 2:02}T02:00:00Z"


def named(home: Path, scope: str) -> str:
    """The id of a topic of a scope, whatever became of it."""
    every = topics(home) | topics(home, "archived")
    return min(topic for (found, _), topic in every.items() if found == scope)


# --- what happens before a night, to the scopes of one shard


def dumped(home: Path, scopes: list[str], night: int) -> None:
    """Rows that are imported, or dropped into the inbox."""
    if night % 2:
        imported(home, night, scopes)
    else:
        dropped(home, scopes, night)


def dropped(home: Path, scopes: list[str], night: int) -> None:
    rows = [json.dumps(row) for row in rows_of(night) if f"user:{row['scope']['id']}" in scopes]
    (home / "inbox").mkdir(exist_ok=True)
    file = home / "inbox" / f"{night}.jsonl"
    file.write_text("\n".join(rows))
    os.utime(file, (0, 0))


def accessed(home: Path, scopes: list[str], night: int) -> None:
    done(home, "feedback", named(home, scopes[0]), "--used", "--now", when(night))


def pinned(home: Path, scopes: list[str], night: int) -> None:
    done(home, "pin", named(home, scopes[0]), "--now", when(night - 1))


def undone(home: Path, scopes: list[str], night: int) -> None:
    merges = [merge["id"] for merge in done(home, "merges")["merges"] if merge["scope"] in scopes]
    if merges:
        done(home, "undo", min(merges), "--now", when(night - 1))


def governed(home: Path, _scopes: list[str], night: int) -> None:
    """Another policy, which concerns every shard."""
    file = home / "memstate.toml"
    file.write_text(file.read_text() + f"max_field_history = {night + 3}\n")


def nothing(_home: Path, _scopes: list[str], _night: int) -> None:
    """A day without a change."""


def taken(store: Store) -> pl.DataFrame:
    """The decisions of a ledger but for publications, in an order of their own."""
    rows = decisions(store).filter(pl.col("kind") != PUBLISHED)
    return rows.select(pl.col(SAID).exclude("evidence_ids"), pl.col("evidence_ids").list.join(",")).sort(pl.all())


def test_nights_are_run_for_exactly_what_changed_and_lead_to_the_state_of_a_store_that_had_every_night(
    two_nights: Path, tmp_path: Path
) -> None:
    draw = random.Random(1)
    home, twin = (shutil.copytree(two_nights, tmp_path / name) for name in ("home", "twin"))
    store, other = open_store(home, {}), open_store(twin, {})
    events = [dumped, accessed, draw.choice((pinned, undone)), nothing, nothing]
    left, skipped_ever = set[str](), set[str]()
    for night, event in enumerate([*draw.sample(events, len(events)), governed], start=2):
        shard, before = store.layout.of(draw.choice(SCOPES)), decisions(other)["seq"].max()
        for each in (home, twin):
            event(each, [scope for scope in SCOPES if store.layout.of(scope) == shard], night)
        every = done(twin, "maintain", "--now", when(night))
        chosen = done(home, "maintain", "--now", when(night), **SKIPPING)
        rows = decisions(other).filter(pl.col("seq") > before, pl.col("kind") != PUBLISHED)
        changed = set(rows["shard"]) | ({shard} if event in (dumped, accessed) else set())
        changed = set(store.shards) if event is governed else changed
        skipped = set(chosen.get("skipped", []))
        assert not skipped & changed, (night, event.__name__)
        assert set(store.shards) - skipped <= changed | left, "what the night before left to a search, at most"
        assert taken(store).equals(taken(other))
        left, skipped_ever = changed, skipped_ever | skipped
    assert skipped_ever
    assert [each["state_hash"] for each in chosen["shards"]] == [each["state_hash"] for each in every["shards"]]
    assert run_memstate(home, "verify", "--json").document["passed"] is True


# --- what is in doubt is a reason for a night


@pytest.fixture
def quiet(two_nights: Path, tmp_path: Path) -> Store:
    """A copy of the store; under its settings no night is due the day after."""
    home = Path(shutil.copytree(two_nights, tmp_path / "home"))
    with (home / "memstate.toml").open("a") as file:
        file.write("\n[schedule]\nskip_unchanged_days = 30\n")
    return open_store(home, {})


NEXT = parse_moment("2026-04-03T03:00:00Z")
BUSY = "user:u0"


def recorded(store: Store, kind: str, by: str = "", payload: str = "{}", evidence: tuple[str, ...] = ()) -> None:
    """A decision on the shard that changes, recorded by another run, or as if the run that published last took it."""
    shard = store.layout.of(BUSY)
    last = decisions(store).filter(pl.col("shard") == shard).tail(1)
    row = last.with_columns(
        pl.col("seq") + 1000, scope=pl.lit(BUSY), kind=pl.lit(kind), payload_json=pl.lit(payload),
        run_id=pl.lit(by) if by else pl.col("run_id"), evidence_ids=pl.lit([*evidence], pl.List(pl.String)),
    )  # fmt: skip
    with store.ledger.writing("a test"):
        store.ledger.append("transitions", row, f"a test of {kind}")


def _evidence(store: Store) -> None:
    imported(store.home.root, 2, [BUSY])


def _access(store: Store) -> None:
    done(store.home.root, "feedback", named(store.home.root, BUSY), "--used", "--now", when(1))
    collect_accesses(store.home, store.ledger, store.settings, NEXT, "a test")


def _pending(store: Store) -> None:
    work = store.home.work(store.layout.of(BUSY))
    work.parent.mkdir(exist_ok=True)
    pending_path(work).touch()


def _interrupted(store: Store) -> None:
    store.home.work(store.layout.of(BUSY)).mkdir(parents=True)


def _unplaced(store: Store) -> None:
    path = _served(store).path / "evidence.parquet"
    pl.read_parquet(path).with_columns(topic_id=pl.lit(None, pl.String)).write_parquet(path)


def _lost_graph(store: Store) -> None:
    (_served(store).path / "graph.kuzu").unlink()


def _older(store: Store) -> None:
    (store.home.snapshots(store.layout.of(BUSY)) / "CURRENT").write_text("1")


def _served(store: Store) -> Snapshot:
    found = current_snapshot(store.home, store.layout.of(BUSY))
    assert found is not None
    return found


DOUBTS: dict[str, Callable[[Store], object]] = {
    "evidence waits for it": _evidence,
    "accesses wait for it": _access,
    "decisions were recorded since": lambda store: recorded(store, "judged", by="another"),
    "scopes wait for a search of duplicates": lambda store: recorded(store, "restored"),
    "rows that were set aside wait for it": _pending,
    "a run of it was interrupted": _interrupted,
    "evidence has no topic yet": _unplaced,
    "it serves no snapshot that can be read": _lost_graph,
    "its snapshot is not the last one that the ledger records": _older,
    "the conditions were not checked on its snapshot": lambda store: rebuild(store, store.layout.of(BUSY), "again"),
}


def test_rows_that_a_change_of_shards_left_are_a_reason(quiet: Store) -> None:
    recorded(quiet, SET_ASIDE, payload='{"actor": "reshard"}', evidence=("unread",))
    assert nights_due(quiet, NEXT).due == {quiet.layout.of(BUSY): "rows that were set aside wait for it"}


def test_a_value_that_takes_effect_gives_its_shard_a_night(quiet: Store) -> None:
    home = quiet.home.root
    value = {"name": "berth", "value": "C3", "valid_from": "2026-04-10T00:00:00Z"}
    row = {"title": "Harbour", "scope": {"type": "user", "id": "u0"}, "observed_at": when(2), "fields": [value]}
    (home / "later.jsonl").write_text(json.dumps(row))
    done(home, "import", str(home / "later.jsonl"))
    done(home, "maintain", "--now", "2026-04-03T03:00:00Z")
    assert nights_due(quiet, NEXT + timedelta(days=1)).due == {}
    reason = "values or edges take effect or end"
    assert nights_due(quiet, NEXT + timedelta(days=8)).due == {quiet.layout.of(BUSY): reason}


@pytest.mark.parametrize("reason", DOUBTS)
def test_a_shard_in_doubt_has_a_night_and_no_other(quiet: Store, reason: str) -> None:
    assert nights_due(quiet, NEXT).due == {}
    DOUBTS[reason](quiet)
    assert nights_due(quiet, NEXT).due == {quiet.layout.of(BUSY): reason}


def test_what_concerns_every_shard_gives_each_a_night(quiet: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def reasons(now: datetime = NEXT, **environment: str) -> set[str]:
        found = nights_due(open_store(quiet.home.root, environment), now)
        assert (len(found.due), found.skipped) == (2, ())
        return set(found.due.values())

    old = {"its snapshot is as old as the settings allow"}
    assert reasons(NEXT + timedelta(days=30)) == reasons(NEXT - timedelta(days=2)) == old
    assert reasons(MEMSTATE_SCHEDULE_SKIP_UNCHANGED_DAYS="0") == old
    assert reasons(NEXT + timedelta(days=20)) == {"forgetting is due"}
    assert reasons(MEMSTATE_POLICY_MAX_FIELD_HISTORY="7") == {"the policy changed"}
    assert reasons(MEMSTATE_EMBEDDING_QUERY_PREFIX="query: ") == {"the encoder changed"}
    assert run_memstate(quiet.home.root, "compact", "--json").code == 0
    assert nights_due(quiet, NEXT).due == {}, "the same rows in other files"
    with monkeypatch.context() as patch:
        patch.setattr("memstate_core.night.night_reasons.__version__", "another")
        assert reasons() == {"another version of memstate made its snapshot"}
    done(quiet.home.root, "erase", "--scope", BUSY, "--yes")
    assert len(nights_due(quiet, NEXT).due) == 2
