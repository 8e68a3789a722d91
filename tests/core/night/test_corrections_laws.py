"""Law L4 over random histories: observations, merges and undos in any order, applied to one graph."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.night.checks.check import Check
from memstate_core.night.checks.provenance import provenance
from memstate_core.night.checks.query_soundness import query_soundness
from memstate_core.night.checks.transition_soundness import transition_soundness
from memstate_core.policy.settings import Policy
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.fold import State, fold
from memstate_core.state.graph import open_graph
from memstate_core.state.state_hash import state_hash
from tests.core.night.checks.checked_states import checked_state_of, tables
from tests.core.reference import Observation
from tests.core.state.fold.test_fold_properties import canonical
from tests.core.strategies import BUFFER_MIB, evidence_frame, fill, observation, placed, streams

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Stage:
    """The evidence and the decisions (columns DECISION) at one time, and the state that they fold to."""

    stream: list[Observation]
    decisions: pl.DataFrame
    state: State


def state_of(stream: list[Observation], decisions: pl.DataFrame) -> State:
    """A fold whose placement follows the merges in force, as the `placements` step does."""
    evidence, merged = evidence_frame(stream), decided.merges(decisions)
    placements, aliases = placed(evidence, settled=[*merged["dropped"], *merged["survivor"]])
    return fold(evidence, placements, aliases, decisions, Policy())


def stage(stream: list[Observation], decisions: pl.DataFrame) -> Stage:
    return Stage(stream, decisions, state_of(stream, decisions))


def decision(kind: str, topic: dict[str, Any], survivor: str) -> pl.DataFrame:
    names = {"dropped_title": topic["title"], "dropped_kind": topic["topic_kind"]}
    row = {"kind": kind, "scope": topic["scope"], "topic_id": topic["id"], "_said": {"survivor": survivor} | names}
    said = pl.Struct(dict.fromkeys(("survivor", "dropped_title", "dropped_kind"), pl.String))
    frame = pl.DataFrame([row], schema_overrides={"_said": said})
    return frame.select(
        "kind", "scope", "topic_id",
        payload_json=pl.col("_said").struct.json_encode(),
        evidence_ids=pl.lit(None, pl.List(pl.String)), reason=pl.lit("a person"),
    )  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[Stage]:
    """The stages of a shard: each adds evidence, merges two living topics, or undoes a merge.

    Merges chain, and a topic may be merged, freed and merged again; what comes after a merge may name the
    topics that it joined.
    """
    stream = draw(streams(min_size=4))
    imported, decisions = draw(st.integers(2, len(stream))), empty(DECISION)
    stages = [stage(stream[:imported], decisions)]
    for _ in range(draw(st.integers(2, 7))):
        act = draw(st.sampled_from(("import", "merge", "merge", "undo")))
        by_form = pl.col("topic_kind").is_in(FORM_KINDS).fill_null(False)
        living = stages[-1].state.topics.filter((pl.col("state") == "active") & ~by_form).sort("scope", "id")
        pairs = living.join(living, on="scope", suffix="_b").filter(pl.col("id") != pl.col("id_b")).to_dicts()
        in_force = decided.merges(decisions).sort("dropped").to_dicts()
        if act == "import":
            imported = min(imported + 1, len(stream))
        elif act == "merge" and pairs:
            pair = draw(st.sampled_from(pairs))
            decisions = pl.concat([decisions, decision("merged", pair, pair["id_b"])])
        elif act == "undo" and in_force:
            merge = draw(st.sampled_from(in_force))
            topic = {"id": merge["dropped"], "title": None, "topic_kind": None, "scope": merge["scope"]}
            decisions = pl.concat([decisions, decision("unmerged", topic, merge["survivor"])])
        stages.append(stage(stream[:imported], decisions))
    return stages


def without_what_was_undone(decisions: pl.DataFrame) -> pl.DataFrame:
    """The decisions of the same history without its undone merges; computed in plain Python."""
    kept: dict[str, int] = {}
    for place, (kind, topic) in enumerate(decisions.select("kind", "topic_id").iter_rows()):
        if kind == "merged":
            kept[topic] = place
        else:
            del kept[topic]
    return decisions[sorted(kept.values())] if kept else empty(DECISION)


@settings(max_examples=40, deadline=None)
@given(histories())
def test_a_history_with_undone_merges_folds_to_the_one_without(stages: list[Stage]) -> None:
    last = stages[-1]
    assert canonical(last.state) == canonical(state_of(last.stream, without_what_was_undone(last.decisions)))


@settings(max_examples=10, deadline=None)
@given(histories())
def test_a_graph_that_lived_through_it_has_the_hash_of_one_that_did_not(stages: list[Stage]) -> None:
    last = stages[-1]
    with tempfile.TemporaryDirectory() as folder:
        with open_graph(Path(folder) / "lived", buffer_mib=BUFFER_MIB) as graph:
            for each in stages:
                fill(graph, each.state)
            lived = state_hash(graph)
        with open_graph(Path(folder) / "never", buffer_mib=BUFFER_MIB) as graph:
            fill(graph, state_of(last.stream, without_what_was_undone(last.decisions)))
            never = state_hash(graph)
    assert lived == never


@settings(max_examples=8, deadline=None)
@given(histories())
def test_the_conditions_accept_every_stage(stages: list[Stage]) -> None:
    """Undoing a merge makes values current that another topic's had outranked; that is not a revival."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"graph-{place}" for place in range(len(stages))]
        for path, each in zip(paths, stages, strict=True):
            with open_graph(path, buffer_mib=BUFFER_MIB) as graph:
                fill(graph, each.state)
        for place in range(1, len(stages)):
            for check in verdicts(paths[place], paths[place - 1], stages[place]):
                assert check.passed, check.violations.rows()


def verdicts(graph: Path, base: Path, at: Stage) -> list[Check]:
    evidence, beside = evidence_frame(at.stream), {"aliases": at.state.aliases, "held": at.state.evidence_topic}
    checked = checked_state_of(graph, evidence, at.decisions, **beside)
    return [query_soundness(checked), transition_soundness(checked, tables(base).revisions), provenance(checked)]


@pytest.mark.parametrize("order", [("b", "a"), ("a", "b")])
def test_a_chain_is_taken_apart_in_either_order(order: tuple[str, str]) -> None:
    """`b` into `a`, then `a` into `c`: freeing `b` leaves `a` in `c`, freeing `a` keeps `b` with it."""
    stream = [observation(n, topic_id=name, title=name) for n, name in enumerate("abc")]
    topics = {row["id"]: row for row in state_of(stream, empty(DECISION)).topics.to_dicts()}
    merged = [decision("merged", topics["b"], "a"), decision("merged", topics["a"], "c")]
    into = {"b": "a", "a": "c"}
    first, second = (decision("unmerged", topics[name], into[name]) for name in order)
    half = state_of(stream, pl.concat([*merged, first]))
    expected = {"b": {"e00": "c", "e01": "b", "e02": "c"}, "a": {"e00": "a", "e01": "a", "e02": "c"}}
    assert dict(half.evidence_topic.select("evidence_id", "topic_id").iter_rows()) == expected[order[0]]
    whole = state_of(stream, pl.concat([*merged, first, second]))
    assert canonical(whole) == canonical(state_of(stream, empty(DECISION)))
