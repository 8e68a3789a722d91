"""What gates judge: a night beside the snapshot that it started from, and beside past nights.

Read from the working graph, the base and the run's notes. Where questions are asked, the draft of the snapshot is made
now and published later; nothing else is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
import polars as pl

from memstate_core.model.frames import Schema, empty
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.night.gates.recall_loss import RecallLoss, recall_loss
from memstate_core.policy.settings import Policy
from memstate_core.run.begin import base_links
from memstate_core.run.publications import publications
from memstate_core.run.run import GRAPH_FILE, Run
from memstate_core.run.store import Store
from memstate_core.state.fold.decisions import MERGED, SET_ASIDE
from memstate_core.state.graph import TOPIC, open_graph
from memstate_core.state.snapshots import Snapshot, load_snapshot

TOPICS: Schema = {"id": pl.String, "was": pl.String, "scope": pl.String, "state": pl.String}
PAST_NIGHTS = 30


@dataclass(frozen=True)
class Night:
    """A night that has not published yet.

    Attributes:
        topics: columns TOPICS, one row for each topic that was active in the base or is there now: the scope that it
            had in the base if it was active there, and its scope and state now; null where it is gone.
        has_base: whether anything was served before.
        policy_is_unchanged: whether the policy is that of the base.
        sets_aside: whether the run leaves rows out with which a step failed.
        evidence_before: pieces of evidence in the base.
        evidence: pieces of evidence now.
        merge_probabilities: of each automatic merge.
        read: rows that were read since the last report.
        refused: those of them that were refused.
        seconds: by step.
        past: the seconds by step of past nights.
        recall: what questions lose.
    """

    topics: pl.DataFrame = field(default_factory=lambda: empty(TOPICS))
    has_base: bool = True
    policy_is_unchanged: bool = True
    sets_aside: bool = False
    evidence_before: int = 0
    evidence: int = 0
    merge_probabilities: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Float64))
    read: int = 0
    refused: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    past: Sequence[Mapping[str, float]] = ()
    recall: RecallLoss = field(default_factory=RecallLoss)

    @cached_property
    def active(self) -> int:
        """The number of active topics now."""
        return self.topics.filter(pl.col("state") == "active").height

    @cached_property
    def active_before(self) -> int:
        """The number of active topics of the base."""
        return self.topics["was"].count()

    @cached_property
    def gone_by_policy(self) -> pl.DataFrame:
        """Active topics of the base that an unchanged policy archived or merged (columns TOPICS)."""
        left = pl.concat([self._left("archived"), self._left("merged")])
        return left if self.policy_is_unchanged else left.clear()

    def losses(self) -> str:
        """What became of the active topics of the base that are not active now, in a clause."""
        archived, merged = (self._left(state).height for state in ("archived", "merged"))
        gone = self.topics.filter(pl.col("was").is_not_null() & pl.col("state").is_null()).height
        policy = "an unchanged policy, not counted" if self.policy_is_unchanged else "a policy that changed"
        return f"{archived:,} archived and {merged:,} merged by {policy}, {gone:,} gone"

    def _left(self, state: str) -> pl.DataFrame:
        return self.topics.filter(pl.col("was").is_not_null() & (pl.col("state") == state))


def measure(store: Store, run: Run) -> Night:
    """Measures a run whose working graph is complete."""
    number, notes = run.facts.base, run.notes()
    base = None if number is None else load_snapshot(store.home, run.facts.shard, number)
    imported = run.imported()
    return Night(
        topics=_topics(run, base),
        has_base=base is not None,
        policy_is_unchanged=base is None or Policy.recorded(base.manifest.policy) == run.policy,
        sets_aside=SET_ASIDE in run.decisions(SET_ASIDE)["kind"],
        evidence_before=base_links(store, run).height,
        evidence=run.table("links", EVIDENCE_TOPIC).height,
        merge_probabilities=_merge_probabilities(run),
        read=imported.get("read", 0),
        refused=imported.get("quarantined", 0),
        seconds={step: note["seconds"] for step, note in notes.items()},
        past=_past_seconds(store, run.facts.shard),
        recall=recall_loss(store, run),
    )


def _topics(run: Run, base: Snapshot | None) -> pl.DataFrame:
    columns = ["id", "scope", "state"]
    with open_graph(run.graph, read_only=True) as graph:
        now = graph.read(TOPIC, columns)
    if base is None:
        before = now.clear()
    else:
        with open_graph(base.path / GRAPH_FILE, read_only=True) as graph:
            before = graph.read(TOPIC, columns, "r.state = 'active'")
    both = before.select("id", was="scope").join(now, on="id", how="full", coalesce=True)
    return both.select(TOPICS.keys())


def _merge_probabilities(run: Run) -> pl.Series:
    rows = run.decisions("merges").filter(pl.col("kind") == MERGED)
    payload = pl.Struct({"probability": pl.Float64})
    return rows["payload_json"].str.json_decode(payload).struct.field("probability").drop_nulls()


class _Report(msgspec.Struct):
    seconds: dict[str, float]


def _past_seconds(store: Store, shard: str) -> list[dict[str, float]]:
    """The seconds by step of the last nights whose report is there."""
    found: list[dict[str, float]] = []
    for _, manifest in publications(store, shard)[-PAST_NIGHTS:]:
        report = store.home.reports / f"{manifest.run_id}-{shard}.json"
        with suppress(OSError, msgspec.MsgspecError):
            found.append(msgspec.json.decode(report.read_bytes(), type=_Report).seconds)
    return found
