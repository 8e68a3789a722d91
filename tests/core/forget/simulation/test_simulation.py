"""Simulating the present policy reproduces what nights did; another policy is simulated by its own rules."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.forget.ladder import forget
from memstate_core.forget.manual_actions import pin_decisions, restore_decisions
from memstate_core.forget.salience import update_salience
from memstate_core.forget.simulation.event_history import EventHistory, read_history
from memstate_core.forget.simulation.policy_comparison import compare_policies
from memstate_core.forget.simulation.replay_nights import future_nights, past_nights
from memstate_core.forget.simulation.simulation import Simulated, simulate_policy
from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.importer import import_paths
from memstate_core.night.placements import place
from memstate_core.night.publish import publish
from memstate_core.policy.settings import Policy, load_settings
from memstate_core.run.apply import update_topics
from memstate_core.run.begin import begin_run, new_evidence
from memstate_core.run.embed_topics import refresh_embeddings
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store
from memstate_core.state.current import current_snapshot
from memstate_core.state.graph import REVISION, TOPIC, open_graph
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import Ledger
from tests.core.strategies import day

pytestmark = pytest.mark.slow

POLICY: dict[str, Any] = {
    "salience_half_life_days": 1.5,
    "detach_salience_threshold": 0.3,
    "forget_salience_threshold": 0.15,
    "topic_count_soft_limit": 2,
    "max_active_topics": 9,
    "summary_keep_revisions": 2,
    "summarise_salience_threshold": 4.0,
    "rules": (
        {"name": "notes go", "on": "nightly", "when": "topic_kind == 'note' and idle_days > 4", "do": "archive"},
    ),
    "overrides": ({"topic_kind": "deal", "salience_half_life_days": 3.0},),
}
LEVELS = ["active", "detached", "archived", "summarised"]
NIGHTS = 12
BEGIN = 3
"""Replays of past nights begin after this night, when there are recorded decisions."""


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, pl.DataFrame]:
    """A store after its nights, and what each left (columns at, LEVELS, archivals, returns)."""
    store = _store(tmp_path_factory.mktemp("nights"), POLICY)
    rows = []
    for at in range(1, NIGHTS + 1):
        _say(store, at, _said(at))
        _use(store, at)
        freed = _decide(store, at) if at == 8 else 0
        left = _night(store, day(at))
        rows.append(left | {"returns": left["returns"] + freed})
    return store, pl.DataFrame(rows)


def test_simulating_the_present_policy_reproduces_the_nights(nights: tuple[Store, pl.DataFrame]) -> None:
    store, real = nights
    simulated = _simulated(store, store.settings.policy)
    lived = real.filter(pl.col("at") > day(BEGIN))
    assert lived["archived"].max() > 2
    assert lived["detached"].max() > 2
    assert lived["summarised"].max() > 0
    assert lived["returns"].sum() > 1
    columns = ["at", *LEVELS, "archivals", "returns"]
    assert simulated.nights.select(columns).to_dicts() == lived.select(columns).to_dicts()


def test_topics_archived_at_the_end_are_those_that_the_store_has_archived(nights: tuple[Store, pl.DataFrame]) -> None:
    store, _ = nights
    simulated = _simulated(store, store.settings.policy).topics
    served = read_served(store)["s0"].topics.filter(pl.col("merged_into").is_null())
    archived = served.filter(pl.col("state") == "archived")["id"]
    assert simulated.filter("archived")["topic_id"].sort().to_list() == archived.sort().to_list()
    assert simulated.height == served.height


def test_missed_counts_accesses_of_topics_archived_when_the_day_began(nights: tuple[Store, pl.DataFrame]) -> None:
    store, _ = nights
    simulated = _simulated(store, store.settings.policy)
    assert simulated.nights["missed"].sum() == simulated.missed["times"].sum() > 0
    accesses = store.ledger.scan("accesses").filter(~pl.col("failed")).collect()
    assert simulated.missed["topic_id"].is_in(accesses["topic_id"].implode()).all()
    kept = _simulated(store, Policy())
    assert kept.nights["archivals"].sum() == 0


def test_a_projection_gives_what_the_coming_nights_do(nights: tuple[Store, pl.DataFrame], tmp_path: Path) -> None:
    store, _ = nights
    twin = _copy(store, tmp_path / "twin")
    simulated = simulate_policy(_history(twin), twin.settings.policy, future_nights(day(NIGHTS), 5))
    lived = pl.DataFrame([_night(twin, day(NIGHTS + later)) for later in range(1, 6)])
    assert lived["archivals"].sum() > 0
    columns = ["at", *LEVELS, "archivals", "returns"]
    assert simulated.nights.select(columns).to_dicts() == lived.select(columns).to_dicts()
    assert simulated.nights["missed"].sum() == 0


def test_another_policy_is_simulated_as_if_it_had_been_in_force(
    nights: tuple[Store, pl.DataFrame], tmp_path: Path
) -> None:
    """From the first night on, with no recorded decisions, it gives what a store under that policy does."""
    store, _ = nights
    other = POLICY | {"salience_half_life_days": 1.0, "rules": (), "max_active_topics": 5}
    twin, rows = _store(tmp_path / "other", other), []
    for at in range(1, 7):
        _say(twin, at, _said(at))
        _use(twin, at)
        rows.append(_night(twin, day(at)))
    history = _history(store)
    simulated = simulate_policy(history, twin.settings.policy, past_nights(day(6), 6))
    columns = ["at", *LEVELS, "archivals", "returns"]
    assert simulated.nights.select(columns).to_dicts() == pl.DataFrame(rows).select(columns).to_dicts()


def test_policies_are_compared(nights: tuple[Store, pl.DataFrame]) -> None:
    store, _ = nights
    comparison = compare_policies(store, Policy(), day(NIGHTS), NIGHTS - BEGIN)
    assert json.loads(json.dumps(comparison)) == comparison
    assert (comparison["mode"], comparison["from"], comparison["to"]) == (
        "replay",
        "2026-01-04T00:00:00Z",
        "2026-01-13T00:00:00Z",
    )
    present, other = comparison["present"]["totals"], comparison["other"]["totals"]
    assert comparison["difference"] == {name: other[name] - present[name] for name in present}
    assert present["archivals"] == sum(night["archivals"] for night in comparison["present"]["nights"])
    assert present["active"] == comparison["present"]["nights"][-1]["active"]
    assert present["active"] + present["archived"] == other["active"] + other["archived"]
    gone = comparison["would_come_back"]
    assert gone["count"] - comparison["would_go"]["count"] == present["archived"] - other["archived"]
    assert 0 < gone["count"] == len(gone["topics"])


def test_without_new_events_the_coming_days_are_projected(nights: tuple[Store, pl.DataFrame]) -> None:
    store, _ = nights
    assert compare_policies(store, Policy(), day(NIGHTS), 3)["mode"] == "replay"
    assert compare_policies(store, Policy(), day(NIGHTS), 3, forward=True)["mode"] == "projection"
    comparison = compare_policies(store, Policy(), day(60), 3)
    assert (comparison["mode"], comparison["from"], comparison["to"]) == (
        "projection",
        "2026-03-02T00:00:00Z",
        "2026-03-05T00:00:00Z",
    )
    assert len(comparison["other"]["nights"]) == 3


# A store and its nights


def _store(root: Path, policy: Mapping[str, Any]) -> Store:
    settings = load_settings(root, {})
    made = Policy.model_validate(policy)
    return Store(Home(root), settings.model_copy(update={"policy": made}))


def _copy(store: Store, root: Path) -> Store:
    shutil.copytree(store.home.root, root)
    return Store(Home(root), store.settings)


def _history(store: Store) -> EventHistory:
    return read_history(store, read_served(store)["s0"])


def _simulated(store: Store, policy: Policy) -> Simulated:
    return simulate_policy(_history(store), policy, past_nights(day(NIGHTS), NIGHTS - BEGIN))


THINGS = (
    "gravel path", "tax return", "violin lesson", "harbour crane", "sourdough", "telescope", "passport", "bee hive",
    "winter tyres", "choir tour", "solar roof", "dentist", "chess club", "rain barrel",
)  # fmt: skip


def _said(at: int) -> list[dict[str, Any]]:
    """What is observed before a night: a few new topics at first, some of them again, a sensor every day."""
    kinds = ("deal", "note", None)
    fresh = [
        {
            "topic_key": THINGS[number],
            "title": THINGS[number],
            "topic_kind": kinds[number % 3],
            "fields": [{"name": "place", "value": f"shelf {number}"}, {"name": "owner", "value": THINGS[-number]}],
            "edges": [{"kind": ("mentions", "part_of")[number % 2], "to_topic_key": THINGS[max(0, number - 2)]}],
        }
        for number in range(len(THINGS))
        if number // 3 + 1 == at
    ]
    again = [{"topic_key": THINGS[at % 5], "fields": [{"name": "place", "value": f"room {at}"}]}] if at % 4 == 2 else []
    sensor = [
        {"topic_key": "sensor", "title": "Sensor", "fields": [{"name": "reading", "value": hour * at}]}
        for hour in range(3)
        if at < 5
    ]
    return [*fresh, *again, *sensor]


def _say(store: Store, at: int, said: Sequence[Mapping[str, Any]]) -> None:
    store.home.root.mkdir(parents=True, exist_ok=True)
    path = store.home.root / f"day-{at}.jsonl"
    rows = [
        {
            "observation_id": f"{at}-{number}",
            "scope": {"type": "user", "id": "aya"},
            "observed_at": (day(at) - timedelta(minutes=30 * (number + 1))).isoformat(),
            **row,
        }
        for number, row in enumerate(said)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = import_paths(store.ledger, store.settings, [path], now=day(at), run_id=f"import-{at}")
    assert report.accepted == len(rows)


def _ids(store: Store) -> dict[str, str]:
    snapshot = current_snapshot(store.home, "s0")
    if snapshot is None:
        return {}
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        return dict(graph.read(TOPIC, ["title", "id"]).iter_rows())


def _use(store: Store, at: int) -> None:
    """A few topics are used each day, as a whole or by a field, and one fails."""
    ids = _ids(store)
    with AccessJournal(store.home.accesses, f"uses-{at}") as journal:
        for shift, name in enumerate((THINGS[0], THINGS[at % 7], THINGS[(3 * at) % 11])):
            if name in ids and at % 3:
                fields = ["place"] if shift == 1 else None
                journal.record(ids[name], day(at) - timedelta(hours=shift + 1), "test", fields=fields)
        for hour in range(30):
            if THINGS[(at + hour) % 3] in ids:
                journal.record(ids[THINGS[(at + hour) % 3]], day(at) - timedelta(minutes=10 * (hour + 1)), "test")
        if THINGS[4] in ids:
            journal.record(ids[THINGS[4]], day(at) - timedelta(hours=5), "test", failed=True)


def _decide(store: Store, at: int) -> int:
    """A person brings two topics back and pins one of them, recorded as a run of its own; how many come back."""
    served = read_served(store)["s0"]
    archived = served.topics.filter(pl.col("state") == "archived").sort("id")["id"].to_list()
    assert len(archived) > 1
    kept = [restore_decisions(served, archived[:2], "test"), pin_decisions(served, archived[:1], on=True)]
    run = begin_run(store, "s0", f"person-{at}", day(at) - timedelta(hours=2))
    run.decide("corrections", pl.concat(kept))
    none = pl.DataFrame(schema={"evidence_id": pl.String})
    run.keep("placements", place(store, run, none), 0.0)
    run.keep("topics", update_topics(store, run), 0.0)
    refresh_embeddings(store, run)
    update_salience(run)
    publish(store, run)
    run.end()
    return 2


def _night(store: Store, now: datetime) -> dict[str, Any]:
    """A night without the search for duplicates, and what it leaves (LEVELS, archivals, returns)."""
    before = _archived(store)
    ledger: Ledger = store.ledger
    collect_accesses(store.home, ledger, store.settings, now, f"night-{now:%d-%H}")
    run = begin_run(store, "s0", f"night-{now:%m-%d}", now)
    new = new_evidence(store, run).frame
    run.keep("evidence", new_evidence(store, run), 0.0)
    run.keep("placements", place(store, run, new), 0.0)
    run.keep("topics", update_topics(store, run), 0.0)
    refresh_embeddings(store, run)
    update_salience(run)
    steps = forget(store, run, new)
    run.keep("forgetting", steps, 0.0)
    published = publish(store, run).counts
    run.end()
    after = _archived(store)
    levels = {name: published[name] for name in ("active", "detached", "archived")}
    comparison = {"archivals": steps.counts["archived"], "returns": steps.counts["restored"]}
    assert after.height - before.height == comparison["archivals"] - comparison["returns"]
    return {"at": now, **levels, "summarised": _summarised(store), **comparison}


def _archived(store: Store) -> pl.DataFrame:
    snapshot = current_snapshot(store.home, "s0")
    if snapshot is None:
        return pl.DataFrame(schema={"id": pl.String})
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        return graph.read(TOPIC, ["id"], "r.state = 'archived'")


def _summarised(store: Store) -> int:
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    with open_graph(snapshot.path / GRAPH_FILE, read_only=True) as graph:
        return graph.read(REVISION, ["id"], "r.summarises IS NOT NULL").height
