"""The state of a scope as of a past moment: its evidence and decisions up to then, folded again.

A snapshot holds the present: which topics were one, archived or detached earlier, and how salient they were, follows
only from the ledger. So the past is the same fold of the ledger as every night's, ended at the moment. The snapshot's
version of the ledger is read, and its policy applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.model.errors import TopicNotFound
from memstate_core.model.evidence import names_a_topic
from memstate_core.model.frames import project
from memstate_core.model.graph_tables import EDGES, FIELDS, REVIEWS, REVISIONS, TOPICS
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.model.step_frames import ALIASES, EVIDENCE_TOPIC
from memstate_core.placement import turns
from memstate_core.placement.named import place_named
from memstate_core.placement.references import reference_aliases, resolved
from memstate_core.policy.settings import Policy
from memstate_core.run.view import UNUSED
from memstate_core.state.fold import decisions as decided
from memstate_core.state.fold.edges import valid_at
from memstate_core.state.fold.fold import State, fold
from memstate_core.state.fold.rollbacks import ROLLED_BACK, in_effect
from memstate_core.state.fold.shard_history import of_shard
from memstate_core.state.fold.strength import saliences
from memstate_core.state.graph import REVIEW, TOPIC, Graph
from memstate_core.state.ledger.ledger import Ledger
from memstate_core.state.snapshots import Manifest


@dataclass(frozen=True)
class Past:
    """A scope as of a moment; frames have the columns of the tables that they are named for.

    Attributes:
        moment: the moment.
        topics: columns TOPICS, tombstones of merges decided by then among them.
        fields: columns FIELDS.
        revisions: columns REVISIONS, in full, without summaries.
        edges: columns EDGES, those in force then.
        reviews: columns REVIEWS, those open today that were queued by then.
        evidence_topic: the topic of each piece of evidence observed by then (columns EVIDENCE_TOPIC).
        aliases: columns ALIASES.
    """

    moment: datetime
    topics: pl.DataFrame
    fields: pl.DataFrame
    revisions: pl.DataFrame
    edges: pl.DataFrame
    reviews: pl.DataFrame
    evidence_topic: pl.DataFrame
    aliases: pl.DataFrame

    def resolve(self, topic_id: str, snapshot: str) -> list[str]:
        """The ids on the way from an id to the topic that it referred to then, which is the last.

        Args:
            topic_id: an id, an alias, or the id of a tombstone.
            snapshot: the snapshot's name, for the error.

        Raises:
            TopicNotFound: nothing had this id.
        """
        survivors = dict(self.topics.select("id", "merged_into").iter_rows())
        aliased = dict(self.aliases.select("alias", "topic_id").iter_rows())
        way = [topic_id] if topic_id in survivors else [topic_id, aliased.get(topic_id, topic_id)]
        while (survivor := survivors.get(way[-1])) is not None and survivor not in way:
            way.append(survivor)
        if way[-1] not in survivors:
            raise TopicNotFound(topic_id, f"{snapshot} as of {self.moment.isoformat()}")
        return way


def read_past(
    ledger: Ledger, manifest: Manifest, graph: Graph, served: pl.DataFrame, scope: str, moment: datetime
) -> Past:
    """Folds a scope as of a moment, without evidence and accesses that are set aside today: no fold can digest them.

    Args:
        ledger: the ledger.
        manifest: that of the snapshot, which pins the ledger's versions and the policy.
        graph: the snapshot's graph, which has the open reviews and who owns topics.
        served: the evidence of the scope as the snapshot has it (columns EVIDENCE_INDEX).
        scope: the scope.
        moment: the moment.
    """
    policy = Policy.recorded(manifest.policy)
    transitions = _transitions(ledger, manifest, scope)
    evidence = _evidence(ledger, manifest, graph, served, scope)
    aside = decided.set_aside(transitions).implode()
    evidence = evidence.filter(~pl.col("evidence_id").is_in(aside))
    by_then = transitions.filter(pl.col("at") <= moment)
    segments = transitions.filter(pl.col("kind") == decided.SEGMENT_PLACED)
    used = ledger.scan("accesses", manifest.accesses_version).filter(pl.col("at") <= moment)
    accesses = used.filter(~pl.col("access_id").is_in(aside)).collect()
    placements, aliases = _placements(evidence, transitions, by_then, moment)
    decisions = pl.concat([_ended_by(segments, moment), _ladder_and_merges(by_then)]).sort("seq")
    state = fold(evidence, placements, aliases, decisions, policy, accesses, until=moment)
    return _past(state, evidence, manifest, graph, policy, moment)


def _past(
    state: State, evidence: pl.DataFrame, manifest: Manifest, graph: Graph, policy: Policy, moment: datetime
) -> Past:
    known = evidence.filter(pl.col("observed_at") <= moment).select("evidence_id")
    topics, fields = state.topics, state.fields.join(state.topics, left_on="topic_id", right_on="id", how="semi")
    fields, topics = saliences(fields.drop("salience"), topics.drop("salience", "failed_salience"), moment, policy)
    model = pl.when(pl.col("merged_into").is_null()).then(pl.lit(manifest.embedding_model))
    reviews = graph.read(REVIEW, where="r.queued_at <= $moment", moment=moment.replace(tzinfo=None))
    return Past(
        moment=moment,
        topics=project(topics.with_columns(embedding_model=model).sort("id"), TOPICS),
        fields=project(fields.with_columns(pl.col("salience").fill_null(0.0)), FIELDS),
        revisions=project(state.revisions.join(topics, left_on="topic_id", right_on="id", how="semi"), REVISIONS),
        edges=project(state.edges.filter(valid_at(moment)), EDGES),
        reviews=project(reviews.join(topics, left_on="topic_id", right_on="id", how="semi"), REVIEWS),
        evidence_topic=project(state.evidence_topic.join(known, on="evidence_id", how="semi"), EVIDENCE_TOPIC),
        aliases=project(state.aliases, ALIASES),
    )


def _evidence(ledger: Ledger, manifest: Manifest, graph: Graph, served: pl.DataFrame, scope: str) -> pl.DataFrame:
    """The evidence of a scope, without what names a topic that the scope does not own."""
    own = graph.read(TOPIC, ["id"], "r.scope = $scope", scope=scope)["id"]
    refused = served.filter(~pl.col("topic_id").is_in(own.implode()).fill_null(False))["evidence_id"]
    wanted = [name for name in EVIDENCE if name not in UNUSED]
    rows = ledger.scan("evidence", manifest.evidence_version).filter(pl.col("scope") == scope)
    return rows.select(wanted).collect().filter(~(names_a_topic() & pl.col("evidence_id").is_in(refused.implode())))


def _transitions(ledger: Ledger, manifest: Manifest, scope: str) -> pl.DataFrame:
    """The decisions in effect about a scope that the snapshot follows, in order (columns TRANSITIONS).

    Rows of every scope that were set aside or readmitted are among them, since an access may name no scope.
    """
    rows = of_shard(ledger.scan("transitions"), manifest.shard)
    last = rows.filter(pl.col("run_id") == manifest.run_id).select(pl.col("seq").max()).collect().item()
    rows = rows if last is None else rows.filter(pl.col("seq") <= last)
    aside = pl.col("kind").is_in([decided.SET_ASIDE, decided.READMITTED])
    wanted = (pl.col("scope") == scope) | aside | (pl.col("kind") == ROLLED_BACK)
    return in_effect(rows.filter(wanted).sort("seq").collect())


def _placements(
    evidence: pl.DataFrame, transitions: pl.DataFrame, by_then: pl.DataFrame, moment: datetime
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Where evidence belonged (columns PLACEMENTS), and title aliases (columns ALIASES), by what was observed then.

    Evidence observed later is placed as it is today: it may assert what was true by then.
    """
    segments = decided.segments(transitions)
    owned, is_known = segments.select("topic_id", "scope"), pl.col("observed_at") <= moment
    known, later = evidence.filter(is_known), evidence.filter(~is_known).select("evidence_id")
    then = place_named(known, owned, _settled(by_then))
    now = place_named(evidence, owned, _settled(transitions)).placements.join(later, on="evidence_id", how="semi")
    frame = pl.concat([then.placements, now, turns.placements(segments)])
    by_then, today = (reference_aliases(rows, frame) for rows in (known, evidence))
    late = pl.col("evidence_id").is_in(later["evidence_id"].implode())
    placed = [resolved(frame.filter(~late), by_then), resolved(frame.filter(late), today)]
    return pl.concat(placed), pl.concat([then.aliases, by_then])


def _settled(transitions: pl.DataFrame) -> list[str]:
    merged = decided.merges(transitions)
    return [*merged["dropped"], *merged["survivor"]]


def _ended_by(segments: pl.DataFrame, moment: datetime) -> pl.DataFrame:
    """The segments that had ended; the title of one that went on is made of what was said later too."""
    return segments.filter(decided.segments(segments)["ended_at"] <= moment)


def _ladder_and_merges(transitions: pl.DataFrame) -> pl.DataFrame:
    """Decisions other than placements and summaries; a summary loses nothing of what it stands for."""
    left_out = (decided.SEGMENT_PLACED, decided.SUMMARISED, decided.EXPANDED)
    return transitions.filter(~pl.col("kind").is_in(left_out))
