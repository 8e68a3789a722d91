"""Each condition detects its own kinds of damage in a served snapshot, and no other condition does.

Graph, files and ledger are damaged in a copy of a real store. Digests and state hash are corrected, in the
manifest and in the ledger's record of it, so that the condition itself has to detect the damage.
"""

from __future__ import annotations

import shutil
from typing import Any

import polars as pl
import pytest

from memstate_core.forget.eviction_fit import FEWEST_REQUESTS
from memstate_core.forget.manual_actions import pin_decisions
from memstate_core.night.checks.ladder_decisions import FITTED_FROM
from memstate_core.night.checks.suite import served_conditions
from memstate_core.night.corrections import correct
from memstate_core.night.verify import verify_store
from memstate_core.revise.undo import confirm_decisions
from memstate_core.run.run import GRAPH_FILE
from memstate_core.run.served_state import read_served
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, open_graph
from tests.core.night.checks.damage import (
    BUFFER_MIB,
    Damage,
    Home,
    both,
    decide,
    delete,
    forget,
    insert,
    policy,
    rewrite,
    update,
)
from tests.core.night.checks.store import AYA, KITE, LAST, key
from tests.core.strategies import day

pytestmark = pytest.mark.slow

ACME, BOAT, CLAUSE, FADING, GONE, KEPT, LOG, TIDE = (
    key(name) for name in ("acme", "boat", "clause", "fading", "gone", "kept", "log", "tide")
)
OLD, BACK, DROPPED, KITE_PLAN = key("old"), key("back"), key("acme-two"), key("kite", KITE)


def topic(name: str) -> str:
    return f"r.id = '{name}'"


def slot(name: str, field: str, rank: int = 0) -> str:
    return f"r.topic_id = '{name}' AND r.name = '{field}' AND r.rank = {rank}"


def link(start: str, kind: str) -> str:
    return f"a.id = '{start}' AND r.kind = '{kind}'"


def kind(name: str, of: str | None = None) -> pl.Expr:
    found = pl.col("kind") == name
    return found if of is None else found & (pl.col("topic_id") == of)


def archived_instead(home: Home) -> None:
    """The bound took LOG, which has more salience than GONE, and left that."""
    with open_graph(home.served / GRAPH_FILE, read_only=True, buffer_mib=BUFFER_MIB) as graph:
        salience = graph.read(TOPIC, ["salience"], topic(LOG)).item()
    both(
        rewrite(kind("archived", GONE), by="bound", salience=salience),
        lambda home: home.ledger(
            "transitions",
            lambda rows: rows.with_columns(
                topic_id=pl.when(kind("archived", GONE)).then(pl.lit(LOG)).otherwise("topic_id")
            ),
        ),
        update(TOPIC, topic(LOG), state="archived", archived=True),
        update(TOPIC, topic(GONE), state="active", archived=False),
    )(home)


def review_ended(home: Home) -> None:
    """A correction pins a topic; beside the pin, it ended the review of another one that was queued by a night."""
    pin = pin_decisions(read_served(home.store)["s0"], [LOG], on=True)
    correct(home.store, "s0", "correction-121", day(121), pin, "a person decided it")
    pinned = Home(home.store.home.root)
    both(
        delete(REVIEW, f"r.topic_id = '{CLAUSE}'"),
        decide("review_ended", CLAUSE, AYA, {"cause_topic_id": ACME, "hops": 2}),
    )(pinned)


LAST_VERDICT, LAST_MERGE = (
    kind(name) & (pl.col("seq") == pl.col("seq").max().over("kind")) for name in ("judged", "merged")
)
C1: dict[str, Damage] = {
    "a gap between ranks": update(REVISION, slot(ACME, "owner", 1), rank=5),
    "an older value outranks a newer one": update(REVISION, slot(ACME, "owner", 1), valid_from=day(119)),
    "the newest value is changed": update(REVISION, slot(BOAT, "owner"), value_json='"Zoe"'),
    "the newest value is dropped": both(
        delete(REVISION, slot(ACME, "owner")),
        update(REVISION, slot(ACME, "owner", 1), rank=0),
        update(REVISION, slot(ACME, "owner", 2), rank=1),
        update(REVISION, slot(ACME, "owner", 3), rank=2),
    ),
    "a value began later than evidence says": update(REVISION, slot(BOAT, "owner"), valid_from=day(110)),
    "a title is changed": update(REVISION, slot(BOAT, "title"), value_json='"Boat"'),
    "a field without its value": delete(REVISION, slot(CLAUSE, "term")),
    "a value without its field": delete(FIELD, f"r.topic_id = '{CLAUSE}' AND r.name = 'term'"),
    "a tombstone that leads to nobody": update(TOPIC, topic(DROPPED), merged_into="nobody"),
    "a mark that contradicts the state": update(TOPIC, topic(BOAT), archived=True),
}
C2: dict[str, Damage] = {
    "archived without a decision": update(TOPIC, topic(CLAUSE), state="archived", archived=True),
    "a decision to archive that is gone": forget(kind("archived", OLD)),
    "a pin without a decision": update(TOPIC, topic(BOAT), pinned=True),
    "a detached field without a decision": update(FIELD, f"r.topic_id = '{BOAT}'", detached=True),
    "a detached edge without a decision": update(EDGE, link(BOAT, "part_of"), detached=True),
    "a decision to detach that is gone": forget(
        kind("detached", FADING) & (pl.col("payload_json").str.contains("edges"))
    ),
    "archived with another salience than it had": rewrite(kind("archived", GONE), salience=0.001),
    "archived by a rule that does not archive": rewrite(kind("archived", GONE), by="rule"),
    "archived by a bound that held": both(rewrite(kind("archived", GONE), by="bound"), policy(max_active_topics=11)),
    "archived by the bound, though another topic had less salience": archived_instead,
    "archived below the soft limit": policy(topic_count_soft_limit=11, max_active_topics=11),
    "restored by an access that never was": rewrite(kind("restored", BACK), by="access"),
    "summarised, though the rule is gone": policy(rules=[]),
    "detached above the threshold": policy(detach_salience_threshold=0.06),
    "archived above the threshold of its scope": policy(overrides=[{"scope": AYA, "forget_salience_threshold": 0.04}]),
    "archived though its kind is pinned": policy(pinned_kinds=["harbour"]),
    "archived though it is pinned": both(
        decide("pinned", GONE, AYA, {"actor": "person"}, first=True), update(TOPIC, topic(GONE), pinned=True)
    ),
    "merged with a topic of another scope": update(TOPIC, topic(DROPPED), scope=KITE),
    "decided under another policy": lambda home: home.ledger(
        "transitions", lambda rows: rows.with_columns(policy=pl.lit("0" * 64))
    ),
}
C3: dict[str, Damage] = {
    "a dependent does not wait": delete(REVIEW, f"r.topic_id = '{BOAT}'"),
    "a dependent two hops away does not wait": delete(REVIEW, f"r.topic_id = '{CLAUSE}'"),
    "a topic waits without a decision": insert(
        REVIEW, id=KEPT, topic_id=KEPT, cause_topic_id=ACME, hops=1, reason="it is said", queued_at=day(LAST)
    ),
    "a topic waits for another cause": update(REVIEW, f"r.topic_id = '{CLAUSE}'", cause_topic_id=KEPT),
    "a topic waits at another distance": update(REVIEW, f"r.topic_id = '{CLAUSE}'", hops=1),
    "a topic waits since another time": update(REVIEW, f"r.topic_id = '{BOAT}'", queued_at=day(3)),
    "the queue and its record are both gone": both(
        delete(REVIEW, f"r.topic_id = '{CLAUSE}'"), forget(kind("review_queued", CLAUSE))
    ),
    "the queue, its record and that of the change are gone": both(
        delete(REVIEW, f"r.topic_id IN ['{BOAT}', '{CLAUSE}']"),
        forget(pl.col("kind").is_in(["topic_updated", "review_queued", "review_ended"])),
    ),
    "a review ended of a topic that nobody confirmed": both(
        decide("review_queued", KEPT, AYA, {"cause_topic_id": ACME, "hops": 1}, first=True),
        decide("review_ended", KEPT, AYA, {"cause_topic_id": ACME, "hops": 1}),
    ),
    "a review ended beside a correction of another topic": review_ended,
}
C4: dict[str, Damage] = {
    "a value cites evidence of another topic": update(REVISION, slot(BOAT, "owner"), evidence_ids=["e" * 32]),
    "a value cites nothing": update(REVISION, slot(BOAT, "owner"), evidence_ids=[]),
    "an older value is changed": update(REVISION, slot(ACME, "owner", 2), value_json='"Zoe"'),
    "an edge that nobody stated": insert(EDGE, from_id=TIDE, to_id=LOG, kind="mentions", evidence_ids=["e" * 32]),
    "an edge is gone": delete(EDGE, link(FADING, "mentions")),
    "an edge has an end that nobody stated": update(EDGE, link(FADING, "mentions"), valid_until=day(90)),
    "an edge began earlier than evidence says": update(EDGE, link(BOAT, "part_of"), valid_from=day(3)),
    "evidence is served under another topic": lambda home: home.file(
        "evidence.parquet",
        lambda rows: rows.with_columns(topic_id=pl.col("topic_id").replace({CLAUSE: BOAT})),
    ),
    "an alias leads elsewhere": lambda home: home.file(
        "aliases.parquet", lambda rows: rows.with_columns(topic_id=pl.col("topic_id").replace({ACME: BOAT}))
    ),
    "what a summary stands for is gone": lambda home: home.file("compressed.parquet", lambda rows: rows.tail(2)),
    "a summary counts too much": update(REVISION, slot(TIDE, "tide", 2), summarises=40),
    "a topic of another scope than its evidence": update(TOPIC, topic(BOAT), scope=KITE),
}
C5: dict[str, Damage] = {
    "the policy's bound is lower": policy(topic_count_soft_limit=3, max_active_topics=8),
    "an archiving is gone": both(
        forget(kind("archived", OLD)), update(TOPIC, topic(OLD), state="active", archived=False)
    ),
    "two topics came back, one of them by hand": both(
        decide("restored", OLD, AYA, {"actor": "person"}),
        update(TOPIC, topic(OLD), state="active", archived=False),
        forget(kind("archived", GONE)),
        update(TOPIC, topic(GONE), state="active", archived=False),
    ),
    "an archived topic lost a value": both(
        delete(REVISION, slot(OLD, "roof")), delete(FIELD, f"r.topic_id = '{OLD}' AND r.name = 'roof'")
    ),
    "an archived topic lost its title": delete(REVISION, slot(GONE, "title")),
    "an archived topic holds another value": update(REVISION, slot(GONE, "depth"), valid_from=day(99)),
}
C6: dict[str, Damage] = {
    "a salience is changed": update(TOPIC, topic(BOAT), salience=3.0),
    "a strength is changed": update(TOPIC, topic(CLAUSE), strength=0.2),
    "a half-life is changed": update(TOPIC, topic(ACME), half_life_days=400.0),
    "a field's salience is changed": update(FIELD, f"r.topic_id = '{KEPT}'", salience=0.5),
    "an access is gone from the ledger": lambda home: home.ledger("accesses", lambda rows: rows.clear()),
    "an access was recorded as a failure": lambda home: home.ledger(
        "accesses", lambda rows: rows.with_columns(failed=pl.lit(True))
    ),
    "a topic is younger than its last event": update(TOPIC, topic(BOAT), reinforced_at=day(119)),
}
SURE: dict[str, Any] = {"actor": None, "probability": 0.99, "weight": 9.0}
"""What a run records of a merge of which it is sure."""
MERGES: dict[str, Damage] = {
    "a person's merge without a verdict": forget(LAST_VERDICT),
    "a person's merge with another verdict": rewrite(LAST_VERDICT, verdict="skip"),
    "a merge of what was judged different": rewrite(LAST_VERDICT, verdict="different"),
    "a model's merge without a probability": rewrite(LAST_MERGE, actor=None),
    "a model's merge below the mean of its group": rewrite(LAST_MERGE, actor=None, probability=0.4, weight=5.0),
    "a model's merge below merge_probability": rewrite(LAST_MERGE, actor=None, probability=0.7, weight=1.0),
    "a model's merge of topics with other keys": rewrite(LAST_MERGE, **SURE),
}
"""Damage to a store whose last run merged two topics by a person's verdict."""
DAMAGES = {
    (condition, name): damage
    for condition, named in zip(("C1", "C2", "C3", "C4", "C5", "C6"), (C1, C2, C3, C4, C5, C6), strict=True)
    for name, damage in named.items()
}


def test_a_sound_store_passes(home: Home) -> None:
    failed = [verdict for verdicts in verify_store(home.store).values() for verdict in verdicts if not verdict.passed]
    assert failed == []


@pytest.mark.parametrize(("condition", "name"), DAMAGES)
def test_verify_names_the_condition_and_no_other(home: Home, condition: str, name: str) -> None:
    """What fails beside it says that the state differs from the ledger's, or from the files made of it."""
    DAMAGES[condition, name](home)
    (verdicts,) = verify_store(home.store).values()
    found = {verdict.name[:2]: verdict.detail for verdict in verdicts if not verdict.passed}
    assert {name for name in found if name[0] == "C"} == {condition}
    assert found.keys() - {condition} <= {"L3", "in", "st", "ma"}
    assert found[condition]


def test_what_is_not_compared_with_a_base_that_is_gone_is_said(home: Home) -> None:
    shutil.rmtree(home.served.parent / "4")
    checked = served_conditions(home.store, home.snapshot)
    assert checked is not None
    assert all(check.passed for check in checked.values())
    said = {name[:2]: check.notes for name, check in checked.items() if check.notes}
    assert said == {
        "C2": ("current values not checked against the base: base no longer kept",),
        "C3": ("changes that no decision names not checked against the base: base no longer kept",),
        "C6": ("accessed topics not checked against the base: base no longer kept",),
    }


def test_the_order_is_checked_where_no_fitted_curve_may_decide_it() -> None:
    """The check has the figure of its own, since it uses no step that it checks."""
    assert FITTED_FROM == FEWEST_REQUESTS


@pytest.mark.parametrize("name", MERGES)
def test_a_merge_needs_a_verdict_or_a_probability(merged: Home, name: str) -> None:
    assert failed_conditions(merged) == []
    MERGES[name](merged)
    assert failed_conditions(Home(merged.store.home.root)) == ["C2"]


def test_a_person_may_end_a_review(home: Home) -> None:
    """The same end as in the damage, by a person."""
    confirmed = confirm_decisions(read_served(home.store)["s0"], [CLAUSE])
    correct(home.store, "s0", "correction-121", day(121), confirmed, "a person decided it")
    assert failed_conditions(Home(home.store.home.root)) == []


def failed_conditions(home: Home) -> list[str]:
    checked = served_conditions(home.store, home.snapshot)
    assert checked is not None
    return [name[:2] for name, check in checked.items() if not check.passed]
