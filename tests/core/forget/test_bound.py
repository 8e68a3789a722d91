"""The bound on active topics: pins win over it, and no number of pins ever stops a night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.forget.archiving import to_archive
from memstate_core.forget.bound import over_bound
from memstate_core.forget.manual_actions import pin_decisions, restore_decisions
from memstate_core.forget.topic_features import TOPIC_COLUMNS, FeatureInputs, features_of, governed
from memstate_core.model.frames import MOMENT
from memstate_core.night.verify import verify
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import Policy
from tests.core.forget.lives import AYA, Life, begun, owner, topic_id
from tests.core.strategies import day

pytestmark = pytest.mark.slow

NAMES = [f"t{number}" for number in range(8)]
PIN_RULES = ("salience > 0.5", "active >= 4", "title == 't1' or title == 't2'", "not redundant")
names = st.sets(st.sampled_from(NAMES))
nights = st.lists(
    st.fixed_dictionaries(
        {
            "bound": st.integers(1, 6),
            "pinned": names,
            "used": names,
            "kinds": st.sets(st.sampled_from(("deal", "note"))),
            "rules": st.lists(st.tuples(st.sampled_from(PIN_RULES), st.sampled_from(("nightly", "query_complete")))),
        }
    ),
    min_size=2,
    max_size=5,
)
topics = st.lists(
    st.tuples(st.sampled_from((AYA, "project:kite")), st.sampled_from(("deal", "note", None)), st.floats(0, 1)),
    min_size=len(NAMES),
    max_size=len(NAMES),
)


def policy(bound: int, kinds: set[str], rules: list[tuple[str, Any]]) -> Policy:
    pinning = [Rule(name=f"r{n}", on=on, when=when, do="pin") for n, (when, on) in enumerate(rules)]
    return Policy(
        max_active_topics=bound, topic_count_soft_limit=1, pinned_kinds=tuple(sorted(kinds)), rules=tuple(pinning)
    )


def known(rows: list[tuple[str, str | None, float]], pinned: set[str], archived: set[str]) -> FeatureInputs:
    """Topics with these scopes, kinds and saliences."""
    count = len(rows)
    frame = pl.DataFrame(
        {
            "id": NAMES, "title": NAMES,
            "scope": [scope for scope, _, _ in rows],
            "topic_kind": pl.Series([kind for _, kind, _ in rows], dtype=pl.String),
            "salience": [salience for _, _, salience in rows],
            "state": ["archived" if name in archived else "active" for name in NAMES],
            "pinned": [name in pinned for name in NAMES],
            "failed_salience": [0.0] * count, "half_life_days": [1.0] * count,
            "reinforced_at": pl.Series([day(0)] * count, dtype=MOMENT),
            "created_at": pl.Series([day(0)] * count, dtype=MOMENT),
        }
    )  # fmt: skip
    evidence, fields = (pl.DataFrame(schema={"topic_id": pl.String, name: pl.Int64}) for name in ("evidence", "fields"))
    edges = pl.DataFrame(schema=dict.fromkeys(("from_id", "to_id", "kind"), pl.String))
    held = pl.DataFrame(schema=dict.fromkeys(("topic_id", "last_event_at"), pl.String))
    return FeatureInputs(frame.select(TOPIC_COLUMNS), evidence, fields, edges, held)


@given(topics, nights)
def test_after_every_night_a_scope_is_within_the_bound_or_has_pinned_topics_only(
    rows: list[tuple[str, str | None, float]], nights: list[dict[str, Any]]
) -> None:
    archived: set[str] = set()
    nobody = pl.Series("topic_id", [], pl.String)
    for at, night in enumerate(nights, 1):
        held = policy(night["bound"], night["kinds"], night["rules"])
        used = pl.Series("topic_id", sorted(night["used"]), pl.String)
        features = features_of(known(rows, night["pinned"], archived), day(at), held, nobody, used)
        found = governed(features, held).with_columns(retention="salience")
        going = to_archive(found, pl.DataFrame(schema=dict.fromkeys(("base", "dependent"), pl.String)), held)
        gone = going.filter(pl.col("reason").is_not_null())["topic_id"].to_list()
        state = pl.when(pl.col("topic_id").is_in(gone)).then(pl.lit("archived")).otherwise("state")
        after = found.with_columns(state=state)
        over = over_bound(after, held)
        assert over["active"].to_list() == over["pinned"].to_list()
        assert not set(gone) & set(found.filter("pinned")["topic_id"])
        archived = set(after.filter(pl.col("state") == "archived")["topic_id"])


def active(life: Life) -> list[str]:
    return [name for name, state in zip(KEYS, life.states(*KEYS), strict=True) if state == "active"]


def sound(life: Life) -> bool:
    return all(verdict.passed for verdict in verify(life.store, life.served().snapshot))


KEYS = ("acme", "boat", "cat")


def test_more_pins_than_the_bound_refuse_no_night_and_no_change_of_pins(tmp_path: Path) -> None:
    life = begun(tmp_path, salience_half_life_days=90.0)
    life.night(0.5)
    for key in KEYS:
        life.pins(key, 0.5)
    life.under(salience_half_life_days=90.0, max_active_topics=1)
    assert (life.night(1), active(life), sound(life)) == ({}, [*KEYS], True)
    for key in KEYS:
        life.pins(key, 1, on=False)
    assert (active(life), sound(life)) == ([*KEYS], True)
    assert life.night(2) == {"archived": 2}
    (archived, *_) = sorted(set(KEYS) - set(active(life)))
    both = pl.concat([restore_decisions(life.served(), [topic_id(archived)], "a person wants it kept"),
                      pin_decisions(life.served(), [topic_id(archived)], on=True)])  # fmt: skip
    life.decides(both, 2)
    assert (len(active(life)), sound(life)) == (2, True)
    assert (life.night(3), active(life)) == ({"archived": 1}, [archived])


def test_more_topics_pinned_by_a_rule_than_the_bound_refuse_no_night(tmp_path: Path) -> None:
    """The rule holds for two topics as the night begins, and for none of them once the third was archived."""
    pin = Rule(name="keep", on="nightly", when="active >= 3 and title != 'Cat food'", do="pin")
    life = begun(tmp_path, salience_half_life_days=90.0, max_active_topics=1, rules=(pin,))
    life.night(0.5)
    assert active(life) == ["acme", "boat"]


def test_a_topic_that_the_bound_keeps_archived_refuses_no_night(tmp_path: Path) -> None:
    """Superseded, it would leave first, so it stays archived in spite of new evidence, which is no decision."""
    life = Life(tmp_path, salience_half_life_days=90.0, max_active_topics=2, topic_count_soft_limit=2)
    supersedes = [{"to_topic_key": "old", "kind": "supersedes"}]
    life.says(0, {"old": owner("Aya"), "new": owner("Ben", edges=supersedes), "other": owner("Cleo")})
    assert life.night(1) == {"archived": 1}
    life.says(2, {"old": owner("Dora"), "new": owner("Eve"), "fourth": owner("Finn")})
    assert life.night(3) == {"archived": 1}
    assert (life.states("old", "new", "other", "fourth"), sound(life)) == (
        ["archived", "active", "archived", "active"],
        True,
    )
