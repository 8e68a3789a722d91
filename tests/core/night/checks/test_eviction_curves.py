"""C2 for the order over the bound in scopes with many accesses: some curve that is compared must give it."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.forget import eviction_fit
from memstate_core.model.frames import MOMENT
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.night.checks.eviction_curves import GROWTHS, HALF_LIVES, retained
from memstate_core.night.checks.suite import served_conditions
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.store import open_store
from memstate_core.state.graph import TOPIC, open_graph
from tests.core.frames import filled
from tests.core.night.checks.damage import BUFFER_MIB, Home, both, rewrite, update
from tests.core.night.checks.store import key
from tests.core.revise.nights import night_without_duplicates, record_by_key
from tests.core.strategies import day
from tests.pipeline.conftest import shared

BOUND, TOPICS, LAST = 10, 20, 40
SETTINGS = f"[policy]\ntopic_count_soft_limit = 1\nmax_active_topics = {BOUND}\nforget_salience_threshold = 0.0001\n"


def test_the_curves_are_those_that_are_compared() -> None:
    """The check has figures of its own, since it uses no step that it checks."""
    assert (HALF_LIVES, GROWTHS) == (eviction_fit.HALF_LIVES, eviction_fit.GROWTHS)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 60)), min_size=1, max_size=25),
    st.sampled_from(HALF_LIVES),
    st.sampled_from(GROWTHS),
)
def test_ranks_are_those_of_the_step(events: list[tuple[int, float]], half_life: float, growth: float) -> None:
    rows = pl.DataFrame(
        {"topic_id": [str(topic) for topic, _ in events], "at": [day(0) + timedelta(days=at) for _, at in events]},
        schema={"topic_id": pl.String, "at": MOMENT},
    ).sort("topic_id", "at")
    found = dict(retained(rows, half_life, growth, day(61)).iter_rows())
    topics = np.array([topic for topic, _ in events])
    times = rows.select(since=(pl.col("at") - day(0)).dt.total_microseconds() / 86_400_000_000)["since"].to_numpy()
    curve = eviction_fit.Curve(half_life, growth)
    ranks = eviction_fit.retention(np.sort(topics), times, 61.0, curve, 4)
    for topic, rank in found.items():
        assert rank == pytest.approx(ranks[int(topic)], rel=1e-6, abs=1e-6)


@pytest.fixture(scope="session")
def crowded_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose nights keep within the bound by a fitted curve: each day others are asked for, in a fixed order."""

    def made(root: Path) -> None:
        root.mkdir()
        root.joinpath("memstate.toml").write_text(SETTINGS)
        store = open_store(root, {})
        names = [f"t{number:02}" for number in range(TOPICS)]
        record_by_key(store, {name: {"title": f"About {name}"} for name in names}, 1)
        rows = [
            {
                "access_id": f"{today} {place} {again}",
                "topic_id": key(names[(today + place) % TOPICS]),
                "at": day(today) + timedelta(minutes=place * 7 + again),
                "failed": False,
            }
            for today in range(5, LAST)
            for place in range(6)
            for again in range(4)
        ]
        with store.ledger.writing("test"):
            store.ledger.append("accesses", filled(pl.DataFrame(rows), ACCESSES), "accesses/1")
        night_without_duplicates(store, LAST)

    return shared(tmp_path_factory, "crowded", made)


@pytest.fixture
def crowded(crowded_home: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(crowded_home, tmp_path / "home"))


def problems(home: Home) -> list[str]:
    checked = served_conditions(home.store, Home(home.store.home.root).snapshot)
    assert checked is not None
    return [row["problem"] for check in checked.values() for row in check.violations.iter_rows(named=True)]


def topics(home: Home) -> pl.DataFrame:
    with open_graph(home.served / GRAPH_FILE, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        return graph.read(TOPIC, ["id", "state", "salience", "reinforced_at"]).sort("reinforced_at")


def swapped(home: Home, taken: str, left: str) -> None:
    """The bound took a topic that stayed, and left one that it took."""
    salience = dict(topics(home).select("id", "salience").iter_rows())
    gone = (pl.col("kind") == "archived") & (pl.col("topic_id") == left)
    other = pl.when(gone).then(pl.lit(taken)).otherwise("topic_id")
    both(
        rewrite(gone, salience=salience[taken]),
        lambda home: home.ledger("transitions", lambda rows: rows.with_columns(topic_id=other)),
        update(TOPIC, f"r.id = '{taken}'", state="archived", archived=True),
        update(TOPIC, f"r.id = '{left}'", state="active", archived=False),
    )(home)


@pytest.mark.slow
def test_a_fitted_order_may_leave_topics_of_less_salience(crowded: Home) -> None:
    rows = topics(crowded)
    state = pl.col("state")
    kept, gone = (rows.filter(state == name) for name in ("active", "archived"))
    assert kept.height == BOUND
    assert kept["salience"].to_numpy().min() < gone["salience"].to_numpy().max()
    assert problems(crowded) == []


@pytest.mark.slow
def test_an_order_that_no_curve_gives_is_refused(crowded: Home) -> None:
    rows = topics(crowded)
    left = rows.filter(pl.col("state") == "archived")["id"][0]
    taken = rows.filter(pl.col("state") == "active")["id"][-1]
    swapped(crowded, taken, left)
    assert set(problems(Home(crowded.store.home.root))) == {"the bound took topics that others leave before"}
