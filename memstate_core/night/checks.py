"""The correctness conditions as queries on a working graph, before anything is published.

Each is written against what the graph holds, not against how it came about, so that a mistake in a step
shows here. A failed one refuses the whole run.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from memstate_core.forget.bound import is_pinned, over_bound
from memstate_core.forget.ladder import STEP as FORGETTING
from memstate_core.model.frames import LINKS, PLACEMENTS
from memstate_core.policy.overrides import value_for
from memstate_core.run.run import Run
from memstate_core.state import decisions as decided
from memstate_core.state.dependents import affected, dependents
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, Graph
from memstate_core.state.history import SLOT
from memstate_core.state.ladder_state import PAYLOAD, Rungs, rungs


@dataclass(frozen=True)
class Check:
    """The verdict on one condition.

    Attributes:
        name: C1 to C6.
        violations: columns subject, problem; empty when the condition holds.
    """

    name: str
    violations: pl.DataFrame

    @property
    def passed(self) -> bool:
        """Whether the condition holds."""
        return self.violations.is_empty()


def query_soundness(graph: Graph) -> Check:
    """C1: each slot has one current revision, the newest by valid time; states and marks agree."""
    revisions = graph.read(REVISION, ["topic_id", "part", "name", "rank", "valid_from"])
    topics = graph.read(TOPIC, ["id", "state", "archived", "merged_into"])
    fields = graph.read(FIELD, ["topic_id", "name"])
    ordered = revisions.sort(*SLOT, "rank").with_columns(
        _place=pl.int_range(pl.len()).over(SLOT), _newer=pl.col("valid_from").shift().over(SLOT)
    )
    slots = revisions.filter((pl.col("part") == "field") & (pl.col("rank") == 0))
    bare = pl.concat(
        [
            fields.join(slots, on=["topic_id", "name"], how="anti"),
            slots.join(fields, on=["topic_id", "name"], how="anti").select(fields.columns),
        ]
    )
    alive = topics.filter(pl.col("state") != "merged")
    lost = pl.col("merged_into").is_not_null() & ~pl.col("merged_into").is_in(alive["id"].implode())
    marked = (pl.col("archived") != (pl.col("state") == "archived")) | (
        pl.col("merged_into").is_not_null() != (pl.col("state") == "merged")
    )
    return _check("C1", [
        _found(ordered.filter(pl.col("_place") != pl.col("rank")), "topic_id", "ranks are not 0, 1, 2 …"),
        _found(ordered.filter(pl.col("_newer") < pl.col("valid_from")), "topic_id", "a revision outranks a newer one"),
        _found(bare, "topic_id", "a field without a current revision, or the other way round"),
        _found(topics.filter(marked), "id", "state, archived and merged_into contradict each other"),
        _found(topics.filter(lost), "id", "a tombstone does not lead to a living topic"),
    ])  # fmt: skip


def transition_soundness(
    graph: Graph, base: Graph | None, run: Run, all_decisions: pl.DataFrame, compressed: pl.DataFrame | None = None
) -> Check:
    """C2: states follow from recorded decisions, archiving from policy; nothing superseded became current.

    Args:
        graph: the working graph.
        base: that of the snapshot that the run started from.
        run: the run in progress.
        all_decisions: of earlier runs and of this one.
        compressed: the revisions that summaries of the base stand for (columns REVISIONS).
    """
    topics = graph.read(TOPIC, ["id", "state"])
    merged = decided.merges(all_decisions).select(id="dropped", _is=pl.lit("merged"))
    stand = rungs(all_decisions)
    archived = stand.archived.select(id="topic_id", _is=pl.lit("archived")).join(merged, on="id", how="anti")
    expected = topics.join(pl.concat([merged, archived]), on="id", how="left")
    wrong = expected.filter(pl.col("state") != pl.col("_is").fill_null("active"))
    found = [
        _found(wrong, "id", "its state follows from no recorded decision"),
        _found(_against_policy(graph, run), "topic_id", "archived though policy does not ask for it"),
        _found(_marks_against_word(graph, stand), "topic_id", "what is detached follows from no recorded decision"),
    ]
    if base is not None:
        found.append(_found(_revived(graph, base, compressed), "topic_id", "a superseded value became current"))
    return _check("C2", found)


def dependency_consistency(graph: Graph, changed: pl.Series, run: Run) -> Check:
    """C3: whatever depends on a topic that changed in this run changed itself or is queued, up to the caps."""
    dependence = dependents(graph.read(EDGE, ["from_id", "to_id", "kind"]))
    queue = graph.read(REVIEW, ["topic_id"])
    alive = graph.read(TOPIC, ["id"], "r.state <> 'merged'").rename({"id": "topic_id"})
    due = affected(changed, dependence, run.policy).join(alive, on="topic_id", how="semi")
    missed = due.join(queue, on="topic_id", how="anti")
    return _check("C3", [_found(missed, "topic_id", "depends on a change and is not queued for review")])


def provenance_preservation(graph: Graph, run: Run) -> Check:
    """C4: every value and edge leads to evidence of its own topic, and no evidence is left without one."""
    links = run.table("links", LINKS)
    revisions = graph.read(REVISION, ["topic_id", "evidence_ids"])
    edges = graph.read(EDGE, ["from_id", "evidence_ids"]).rename({"from_id": "topic_id"})
    cited = pl.concat([revisions, edges])
    unheard = cited.explode("evidence_ids", empty_as_null=True).join(
        links, left_on=["topic_id", "evidence_ids"], right_on=["topic_id", "evidence_id"], how="anti"
    )
    alive = graph.read(TOPIC, ["id"], "r.state <> 'merged'")
    placed = run.table("placements", PLACEMENTS).filter(pl.col("topic_id").is_not_null())
    homeless = links.join(alive, left_on="topic_id", right_on="id", how="anti")
    return _check("C4", [
        _found(unheard, "topic_id", "a value or edge without evidence in its topic"),
        _found(alive.join(links, left_on="id", right_on="topic_id", how="anti"), "id", "a topic without evidence"),
        _found(homeless, "evidence_id", "evidence of no living topic"),
        _found(placed.join(links, on="evidence_id", how="anti"), "evidence_id", "placed evidence that was lost"),
    ])  # fmt: skip


def bounded_state(graph: Graph, run: Run, also_pinned: pl.Series | None = None) -> Check:
    """C5: active topics in each scope stay within the policy's bound, which pins may exceed.

    A night leaves no more active topics than the bound, or than are pinned if those are more. A correction
    archives nothing, so there what is pinned is not counted: pinning always succeeds.

    Args:
        graph: the working graph.
        run: the run; one that has taken the `forgetting` step is a night.
        also_pinned: topics that count as pinned beside those that a decision or their kind pins.
    """
    topics = graph.read(TOPIC, ["id", "scope", "state", "topic_kind", "pinned"], "r.state = 'active'")
    ruled = pl.lit(False) if also_pinned is None else pl.col("id").is_in(also_pinned.implode())
    over = over_bound(topics.with_columns(pinned=is_pinned(run.policy) | ruled), run.policy)
    bound = pl.lit(run.policy.max_active_topics)
    room = pl.max_horizontal(bound, "pinned") if FORGETTING in run.notes() else bound + pl.col("pinned")
    return _check("C5", [_found(over.filter(pl.col("active") > room), "scope", "over the bound")])


def _against_policy(graph: Graph, run: Run) -> pl.DataFrame:
    """Topics archived in this run that policy does not ask for."""
    rows = run.decisions("forgetting").filter(pl.col("kind") == decided.ARCHIVED)
    payload = pl.col("payload_json").str.json_decode(PAYLOAD)
    archived = rows.with_columns(_payload=payload).unnest("_payload")
    topics = graph.read(TOPIC, ["id", "scope", "state", "topic_kind", "pinned"], "r.state <> 'merged'")
    is_active = pl.col("state") == "active"
    held = topics.group_by("scope").agg(_all=pl.len(), _left=is_active.sum())
    named = topics.select("topic_kind", "pinned", topic_id="id")
    counted = archived.join(held, on="scope").join(named, on="topic_id")
    policy = run.policy
    keys = ("forget_salience_threshold", "detach_salience_threshold")
    limit = pl.max_horizontal(value_for(key, policy) for key in keys)
    pressed = pl.col("active").is_between(policy.topic_count_soft_limit, pl.col("_all"))
    asked = (
        pl.when(pl.col("by") == "threshold")
        .then(pressed & (pl.col("salience") < limit))
        .when(pl.col("by") == "bound")
        .then(pl.col("_left") >= policy.max_active_topics)
        .otherwise((pl.col("by") == "rule").fill_null(False) & any(rule.do == "archive" for rule in policy.rules))
    )
    return counted.filter(~asked.fill_null(False) | is_pinned(policy))


def _marks_against_word(graph: Graph, stand: Rungs) -> pl.DataFrame:
    """Fields and links whose mark of being detached contradicts the recorded decisions (column topic_id)."""
    told = ((FIELD, ["topic_id", "name"], stand.fields), (EDGE, list(EDGE.key), stand.edges))
    return pl.concat([_contradicted(graph.read(table, [*key, "detached"]), key, said) for table, key, said in told])


def _contradicted(rows: pl.DataFrame, key: list[str], said: pl.DataFrame) -> pl.DataFrame:
    marked = rows.join(said.with_columns(_said=True), on=key, how="left")
    return marked.filter(pl.col("detached") != pl.col("_said").fill_null(False)).select(topic_id=pl.col(key[0]))


def _revived(graph: Graph, base: Graph, compressed: pl.DataFrame | None) -> pl.DataFrame:
    """Current revisions that the base had below a newer one which is still there.

    Of revisions as of the same valid time none supersedes the other, so a change of `conflict_rule` may
    show another of them.
    """
    columns = ["id", "topic_id", "part", "name", "rank", "valid_from"]
    now, before = graph.read(REVISION, columns), base.read(REVISION, columns)
    if compressed is not None:
        before = pl.concat([before, compressed.select(columns)])
    current = now.filter(pl.col("rank") == 0)
    was = before.filter(pl.col("rank") == 0).select(*SLOT, _was="id", _since="valid_from")
    superseded = before.join(was, on=SLOT).filter(pl.col("valid_from") < pl.col("_since")).select("id", *SLOT)
    still_there = now.select(*SLOT, _was="id")
    back = current.join(superseded, on=["id", *SLOT], how="semi").join(was, on=SLOT)
    return back.join(still_there, on=[*SLOT, "_was"], how="semi")


def _found(rows: pl.DataFrame, subject: str, problem: str) -> pl.DataFrame:
    return rows.select(subject=pl.col(subject), problem=pl.lit(problem)).unique().sort("subject")


def _check(name: str, found: list[pl.DataFrame]) -> Check:
    schema = {"subject": pl.String, "problem": pl.String}
    return Check(name, pl.concat([pl.DataFrame(schema=schema), *found]))
