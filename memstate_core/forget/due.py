"""Whether the ladder would act on an unchanged state: the forgetting step, at a later time, without writing anything.

Exact, not a bound: it asks the functions that the step decides by, about the served state, with salience, dates of
edges and rules as of that time. Time alone never raises salience, so without rules of its own a policy can ask for a
step only in scopes under pressure, for histories long enough to be summarised, and for sessions, which complete when
they are silent; a correction may have left steps to reverse where some are in force. Other scopes are not read then.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memstate_core.forget.archiving import to_archive
from memstate_core.forget.ladder_steps import history_lengths, steps_due
from memstate_core.forget.topic_features import TOPIC_COLUMNS, FeatureInputs, counted, features_of, governed
from memstate_core.model.forms.session_state import SessionState
from memstate_core.policy.settings import Policy
from memstate_core.state.fold.dependents import dependents
from memstate_core.state.fold.edges import edges_at
from memstate_core.state.fold.ladder_state import LadderState
from memstate_core.state.fold.strength import DECAY, saliences
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph

_FIELD = ["topic_id", "name"]
_STORED = [name for name in TOPIC_COLUMNS if name not in ("salience", "failed_salience", *DECAY)]


def ladder_is_due(graph: Graph, links: pl.LazyFrame, ladder: LadderState, now: datetime, policy: Policy) -> bool:
    """Whether a night that changes nothing else would take or reverse a step of the ladder.

    Args:
        graph: the served graph.
        links: the topic of each piece of evidence (column topic_id); read only where rules count evidence.
        ladder: the ladder state by the recorded decisions.
        now: the time of the night, not before that of the snapshot.
        policy: the policy, which is that of the snapshot.
    """
    ruled = any(rule.do != "merge" for rule in policy.rules)
    scopes = [] if ruled else _scopes_with_steps(graph, ladder, policy)
    if not ruled and not scopes:
        return False
    wanted = "r.state <> 'merged'" + ("" if ruled else " AND r.scope IN $scopes")
    given = {} if ruled else {"scopes": scopes}
    topics = graph.read(TOPIC, [*_STORED, "failed_strength", *DECAY], wanted, **given)
    fields = graph.read(FIELD, ["id", *_FIELD, *DECAY]).join(topics.select(topic_id="id"), on="topic_id", how="semi")
    fields, topics = saliences(fields, topics, now, policy)
    edges, none = edges_at(graph, now), topics["id"].clear()
    evidence = counted(links.select("topic_id").collect() if ruled else fields.clear(), "evidence")
    known = FeatureInputs(topics, evidence, counted(fields, "fields"), edges, ladder.held)
    features = governed(features_of(known, now, policy, new_evidence=none, accessed=none), policy)
    # How many leave a scope over its bound does not depend on their order, so no curve is fitted.
    ranked = to_archive(features.with_columns(retention="salience"), dependents(edges), policy)
    long = fields.select(*_FIELD, "salience").join(history_lengths(graph), on=_FIELD)
    steps = steps_due(features, ranked, long, graph.read(EDGE, list(EDGE.key)), ladder, policy)
    return any(steps.counts().values())


def _scopes_with_steps(graph: Graph, ladder: LadderState, policy: Policy) -> list[str]:
    """The scopes in which time alone can lead to a step, sorted, under a policy without rules."""
    topics = graph.read(TOPIC, ["id", "scope", "state", "topic_kind"])
    active = topics.filter(pl.col("state") == "active")
    pressed = active.group_by("scope").len().filter(pl.col("len") >= policy.topic_count_soft_limit)
    sessions = active.filter(pl.col("topic_kind") == SessionState.topic_kind())
    long = graph.read(REVISION, ["topic_id"], "r.part = 'field' AND r.rank > $keep", keep=policy.summary_keep_revisions)
    in_force = [ladder.fields["topic_id"], ladder.edges["from_id"], ladder.summaries["topic_id"]]
    stepped = topics.filter(pl.col("id").is_in(pl.concat([long["topic_id"], *in_force]).implode()))
    # A scope without active topics is under pressure where the limit is 0.
    every = topics if policy.topic_count_soft_limit == 0 else topics.clear()
    return pl.concat([rows["scope"] for rows in (pressed, sessions, stepped, every)]).unique().sort().to_list()
