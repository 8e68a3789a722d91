"""Nights over whatever a store lives through: each gives the state that the ledger folds to, rested or not."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
import polars as pl
import pytest

from memstate_core.embed.encoder import Encoder, Vectors
from memstate_core.forget.manual_actions import pin_decisions, restore_decisions
from memstate_core.model.errors import RollbackRefused, VerdictRefused
from memstate_core.model.ledger_tables import ACCESSES
from memstate_core.night import reused_base
from memstate_core.night.corrections import correct
from memstate_core.night.publish import draft
from memstate_core.night.rebuild import fold_recorded, rebuild
from memstate_core.night.rollback import roll_back
from memstate_core.night.verify import verify
from memstate_core.retrieve.index.write import EVIDENCE_FILES, EVIDENCE_TERMS
from memstate_core.revise.undo import undo_decisions
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run import apply, refold
from memstate_core.run.run import Run
from memstate_core.run.served_state import Served, read_served
from memstate_core.run.store import Store, open_store
from memstate_core.state.fold.refold import Refolded
from memstate_core.state.graph import NODE_TABLES, REVIEW, VECTOR, open_graph
from memstate_core.state.snapshots import PROBLEMS_FILE
from tests.core.revise.nights import night, record_by_key, record_rows
from tests.core.strategies import day

pytestmark = pytest.mark.slow

POLICY = "[policy]\nmax_active_topics = {active}\ntopic_count_soft_limit = 3\nmax_field_history = 3\n"
WORDS = ("harbour", "kite", "pump", "cellar", "acme", "renewal", "dune", "ferry")


@cache
def _of_word(word: str) -> np.ndarray:
    return np.random.default_rng(crc32(word.encode())).standard_normal(384)


def _encoded(_encoder: Encoder, texts: Sequence[str]) -> Vectors:
    summed = np.array([sum(map(_of_word, re.findall(r"\w+", text.lower())), np.ones(384)) for text in texts])
    vectors: Vectors = (summed / np.linalg.norm(summed, axis=1, keepdims=True)).astype(np.float32)
    return vectors.reshape(-1, 384)


@pytest.fixture(autouse=True)
def _lexical(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Encoder, "encode", _encoded)


@pytest.fixture
def rested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the runs that took the state of their base over."""
    found: list[str] = []
    own = Run.reuse_base
    monkeypatch.setattr(Run, "reuse_base", lambda run: (found.append(run.facts.run_id), own(run))[1])
    return found


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a store after its first night."""
    home = tmp_path_factory.mktemp("resting") / "home"
    home.mkdir()
    _with_policy(home, 20)
    store = open_store(home, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Encoder, "encode", _encoded)
        said(store, random.Random(0), 0, count=8)
        night(store, 1)
    return home


@pytest.fixture
def store(first_night: Path, tmp_path: Path) -> Store:
    """A copy of it."""
    return open_store(Path(shutil.copytree(first_night, tmp_path / "home")), {})


def _with_policy(home: Path, active: int) -> None:
    (home / "memstate.toml").write_text(POLICY.format(active=active))


def shard(store: Store) -> Served:
    return read_served(store)["s0"]


# --- what a store lives through


def said(store: Store, draw: random.Random, at: int, count: int = 3) -> None:
    """Observations with fields, edges (some to topics that come later) and texts; some are late, some name nothing."""
    rows = {}
    for number in range(count):
        key = draw.choice([f"key-{draw.randrange(8)}", f"key-{at}-{number}", ""])
        late = {"observed_at": f"2025-12-{draw.randrange(1, 28):02}T00:00:00Z"} if draw.random() < 0.3 else {}
        named = {
            "title": " ".join(draw.sample(WORDS, 2)),
            "fields": [{"name": draw.choice("ab"), "value": draw.randrange(4)}],
            "edges": [{"to_topic_key": f"key-{draw.randrange(12)}", "kind": draw.choice(["part_of", "mentions"])}],
        }
        rows[key] = {**named, "observation_id": f"{at}/{number}", **late}
    record_by_key(store, rows, at)


def accessed(store: Store, draw: random.Random, at: int) -> None:
    topic = draw.choice(_living(store)["id"].to_list())
    row = {"access_id": f"access-{at}", "scope": "user:aya", "topic_id": topic, "at": day(at), "failed": False}
    with store.ledger.writing("a test"):
        store.ledger.append("accesses", pl.DataFrame([{**dict.fromkeys(ACCESSES), **row}], ACCESSES), f"access-{at}")


def merged(store: Store, draw: random.Random, at: int) -> None:
    one, other = draw.sample(_living(store).filter(state="active")["id"].to_list(), 2)
    _correct(store, verdict_decisions(shard(store), [(one, other, "same")]), at)


def undone(store: Store, draw: random.Random, at: int) -> None:
    dead = shard(store).topics.filter(pl.col("merged_into").is_not_null())["id"].to_list()
    if dead:
        _correct(store, undo_decisions(shard(store), draw.choice(dead)), at)


def pinned(store: Store, draw: random.Random, at: int) -> None:
    topics = _living(store).filter(~pl.col("pinned"))["id"].to_list()
    if topics:
        _correct(store, pin_decisions(shard(store), [draw.choice(topics)], on=True), at)


def unpinned(store: Store, draw: random.Random, at: int) -> None:
    topics = _living(store).filter("pinned")["id"].to_list()
    if topics:
        _correct(store, pin_decisions(shard(store), [draw.choice(topics)], on=False), at)


def restored(store: Store, draw: random.Random, at: int) -> None:
    """An archived topic, pinned at once, since the bound that archived it leaves no room for another."""
    living = _living(store)
    topics = living.filter(pl.col("state") != "active")["id"].to_list() or living["id"].to_list()
    chosen = [draw.choice(topics)]
    decided = [
        restore_decisions(shard(store), chosen, "a person said so"),
        pin_decisions(shard(store), chosen, on=True),
    ]
    _correct(store, pl.concat(decided), at)


def parted(store: Store, draw: random.Random, at: int) -> None:
    """Two topics are different; a refusal is one of topics that a decision keeps together."""
    one, other = draw.sample(_living(store)["id"].to_list(), 2)
    with suppress(VerdictRefused):
        _correct(store, verdict_decisions(shard(store), [(one, other, "different")]), at)


def chatted(store: Store, draw: random.Random, at: int) -> None:
    """Turns of a session that goes on for days."""
    row = {"kind": "user_message", "actor": "Aya", "session_id": f"session-{at % 3}"}
    rows = [
        {**row, "observation_id": f"chat/{at}/{turn}", "turn": turn + 10 * at, "text": " ".join(draw.sample(WORDS, 4))}
        for turn in range(draw.randrange(1, 9))
    ]
    record_rows(store, rows, at)


def bounded(store: Store, draw: random.Random, _at: int) -> None:
    """Another policy, by which topics are archived."""
    _with_policy(store.home.root, draw.randrange(3, 12))


def rolled_back(store: Store, _draw: random.Random, at: int) -> None:
    """The state of the last snapshot before the served one, where there is another."""
    with suppress(RollbackRefused):
        roll_back(store, shard(store), f"rollback-{at}", day(at), None, "a person said so")


def nothing(_store: Store, _draw: random.Random, _at: int) -> None:
    """A day on which nothing arrives."""


EVENTS: tuple[Callable[[Store, random.Random, int], None], ...] = (
    said, chatted, accessed, merged, undone, pinned, unpinned, restored, parted, bounded, rolled_back, nothing,
)  # fmt: skip
LIVED = 7
"""How many of them a store lives through."""


def _living(store: Store) -> pl.DataFrame:
    return shard(store).topics.filter(pl.col("merged_into").is_null()).sort("id")


def _correct(store: Store, decisions: pl.DataFrame | None, at: int) -> None:
    if decisions is not None and decisions.height:
        correct(store, "s0", f"correction-{at}", day(at), decisions, "a person said so")


# --- what is compared


def assert_whole(store: Store, folder: Path) -> None:
    """The served state is that of a whole fold.

    The same are its hash, every column of every table but the review queue, and the bytes of the index.
    """
    served = shard(store).snapshot
    folded = fold_recorded(store, "s0", folder, "whole")
    assert folded.state_hash == served.manifest.state_hash
    with (
        open_graph(served.path / "graph.kuzu", read_only=True) as held,
        open_graph(folded.run.graph, read_only=True) as whole,
    ):
        for table in (one for one in NODE_TABLES if one not in (REVIEW, VECTOR)):
            columns = [name for name in table.schema if name != "embedding"]
            found, expected = (graph.read(table, columns).sort("id") for graph in (held, whole))
            assert found.equals(expected, null_equal=True), table.name
    problems = pl.read_parquet(served.path / PROBLEMS_FILE)
    assert sorted(problems.rows()) == sorted(pl.read_parquet(folded.run.scratch / "tables/problems.parquet").rows())
    anew = draft(folded.store, folded.run).manifest.files
    index = [name for name in anew if name.startswith((*EVIDENCE_FILES, "lexical", "scopes", "topic_vectors"))]
    assert {name: served.manifest.files[name] for name in index} == {name: anew[name] for name in index}


@pytest.mark.parametrize("seed", [7, 26, 33])
def test_every_night_gives_the_state_of_a_whole_fold(
    store: Store, rested: list[str], tmp_path: Path, seed: int
) -> None:
    """The seeds together have each event, with what it needs before it: a pin, a merge, a bound that archives."""
    draw = random.Random(seed)
    for at, event in enumerate(draw.sample(EVENTS, LIVED), start=2):
        store = open_store(store.home.root, {})
        before = shard(store).snapshot.manifest.number
        event(store, draw, at)
        was_idle = event is nothing and before == shard(store).snapshot.manifest.number
        night(open_store(store.home.root, {}), at)
        assert_whole(store, tmp_path / f"fold-{at}")
        assert f"night-{at}" in rested or not was_idle
    assert [verdict for verdict in verify(store, shard(store).snapshot) if not verdict.passed] == []


def test_a_night_without_a_change_shares_the_files_of_evidence(store: Store, rested: list[str]) -> None:
    first = shard(store).snapshot
    night(store, 20)
    second = shard(store).snapshot
    names = [*EVIDENCE_FILES, f"{EVIDENCE_TERMS}/rows.npy"]
    assert rested == ["night-20"]
    assert first.manifest.state_hash != second.manifest.state_hash  # salience has faded
    assert all((first.path / name).samefile(second.path / name) for name in names)
    rebuild(store, "s0", "again")
    anew = shard(store).snapshot
    assert anew.manifest.state_hash == second.manifest.state_hash
    shared = [name for name in second.manifest.files if name.startswith((*EVIDENCE_FILES, "lexical", "scopes"))]
    assert {name: anew.manifest.files[name] for name in shared} == {
        name: second.manifest.files[name] for name in shared
    }


def _late_judgement(store: Store) -> None:
    """A decision that is recorded while the run that publishes next has read the ledger already."""
    row = shard(store).transitions.tail(1).with_columns(
        pl.col("seq") + 1000, kind=pl.lit("judged"), run_id=pl.lit("other"), payload_json=pl.lit("{}")
    )  # fmt: skip
    with store.ledger.writing("a test"):
        store.ledger.append("transitions", row.drop("rolled_back_at", strict=False), "other")


@pytest.mark.parametrize("change", ["evidence", "access", "policy", "decision", "version"])
def test_after_any_change_the_state_of_the_base_is_not_taken_over(
    store: Store, rested: list[str], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    draw = random.Random(0)
    match change:
        case "evidence":
            said(store, draw, 5)
        case "access":
            accessed(store, draw, 5)
        case "policy":
            bounded(store, draw, 5)
        case "decision":
            _late_judgement(store)
        case _:
            monkeypatch.setattr(reused_base, "__version__", "another")
    night(open_store(store.home.root, {}), 6)
    assert rested == []


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[Refolded]:
    """The folds of the step `topics`."""
    found: list[Refolded] = []
    own = apply.fold_run
    monkeypatch.setattr(apply, "fold_run", lambda *given: (found.append(own(*given)), found[-1])[1])
    return found


@pytest.mark.parametrize("change", ["evidence", "access"])
def test_a_night_folds_the_topics_that_changed(
    store: Store, folded: list[Refolded], tmp_path: Path, change: str
) -> None:
    draw = random.Random(0)
    topics = len(_living(store))
    if change == "evidence":
        record_by_key(store, {"key-new": {"title": "Quiet dune"}}, 5)
    else:
        accessed(store, draw, 5)
    night(open_store(store.home.root, {}), 6)
    (fold,) = folded
    assert fold.owners is not None
    assert 0 < fold.state.topics.height < topics
    assert_whole(store, tmp_path / "fold")


@pytest.mark.parametrize("change", ["policy", "version"])
def test_a_night_in_doubt_folds_everything(
    store: Store, folded: list[Refolded], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    draw = random.Random(0)
    said(store, draw, 5)
    night(open_store(store.home.root, {}), 6)
    match change:
        case "policy":
            bounded(store, draw, 7)
        case _:
            monkeypatch.setattr(refold, "__version__", "another")
    said(open_store(store.home.root, {}), draw, 8)
    night(open_store(store.home.root, {}), 8)
    assert [fold.owners is None for fold in folded] == [False, True]
