"""The whole step on a real store: down the ladder, back by evidence and accesses, and never what policy protects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.forget.ladder import forget
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import CHANGES
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import Override
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph, open_graph
from memstate_core.state.state_hash import state_hash
from tests.core.forget.lives import AYA, KEPT, Life, begun, owner, topic_id

pytestmark = pytest.mark.slow

CALM: dict[str, Any] = {"topic_count_soft_limit": 100}
"""No scope is under pressure, so only summaries and rules matter."""


def owners(life: Life) -> list[Any]:
    return [revision["value"] for revision in life.record("acme", history=True)["fields"]["owner"]["history"]]


def rule(action: str, when: str = 'scope == "user:aya"', on: Any = "nightly") -> dict[str, Any]:
    return {"rules": (Rule(name="the rule", on=on, when=when, do=action),)}  # type: ignore[arg-type]


# Down


def test_faded_topics_take_every_step_and_each_is_recorded_with_its_reason(faded: Life) -> None:
    assert faded.states("acme", "boat", "cat") == ["archived"] * 3
    assert faded.detached() == ["mentions", "owner", "owner"]
    assert len(owners(faded)) == 3
    steps = faded.decided("archived", "detached", "summarised")
    assert [step["kind"] for step in steps] == ["archived"] * 3 + ["detached"] * 3 + ["summarised"]
    assert all(step["reason"].startswith("salience 0.0") for step in steps)
    assert faded.served().snapshot.manifest.counts["detached"] == 2


def test_extension_edges_are_never_detached(faded: Life) -> None:
    assert faded.read(EDGE, ["kind", "detached"]).sort("kind").rows() == [("mentions", True), ("part_of", False)]


def test_another_night_changes_nothing_more(faded: Life) -> None:
    before = faded.read(TOPIC, ["id", "state"])
    assert faded.night(11) == {}
    assert faded.read(TOPIC, ["id", "state"]).equals(before)
    assert len(faded.decided("archived", "detached", "summarised")) == 7


def test_without_pressure_histories_are_summarised_and_nothing_else(tmp_path: Path) -> None:
    life = begun(tmp_path, **CALM)
    assert life.night(10) == {"summarised": 1}
    assert (life.states("acme"), life.detached()) == (["active"], [])


# Back


def test_new_evidence_brings_a_topic_back(faded: Life) -> None:
    faded.says(11, {"acme": owner("Zoe")})
    assert faded.night(11) == {"restored": 1, "attached": 1, "expanded": 1}
    assert faded.states("acme", "boat") == ["active", "archived"]
    assert (faded.decided("restored")[-1]["reason"], len(owners(faded))) == ("new evidence names it", 7)
    assert faded.detached() == ["mentions", "owner"]


def test_late_evidence_brings_it_back_only_if_it_is_salient_for_it(faded: Life) -> None:
    """Old evidence is as faded as the rest, so the topic is archived again in the same night."""
    faded.says(0.05, {"acme": owner("Late", title="Of old")}, imported=11)
    assert faded.night(11) == {}
    assert (faded.states("acme"), owners(faded)[0]) == (["archived"], "Aya")


@pytest.mark.parametrize("name", ["acme", topic_id("acme")])
def test_a_use_brings_a_topic_back_and_keeps_it_for_the_night(faded: Life, name: str) -> None:
    faded.accesses(10.5, name)
    assert faded.night(11) == {"restored": 1}
    assert (faded.states("acme", "boat"), faded.decided("restored")[-1]["reason"]) == (
        ["active", "archived"], "it was accessed",
    )  # fmt: skip
    assert faded.night(16) == {"archived": 1}


def test_many_accesses_of_a_field_attach_and_expand_it(faded: Life) -> None:
    for _ in range(5):
        faded.accesses(11, "acme", fields=["owner"])
    assert faded.night(11) == {"restored": 1, "attached": 1, "expanded": 1}
    assert len(owners(faded)) == 6


def test_an_edge_is_attached_when_both_its_ends_are_salient(faded: Life) -> None:
    faded.says(11, {"boat": owner("Ben")})
    assert faded.night(11) == {"restored": 1, "attached": 1}
    faded.says(11.2, {"acme": owner("Aya")})
    assert faded.night(11.2) == {"restored": 1, "attached": 2, "expanded": 1}
    assert faded.detached() == []


def test_a_use_that_failed_brings_nothing_back(faded: Life) -> None:
    faded.accesses(10.5, "acme", failed=True)
    faded.night(11)
    assert faded.states("acme") == ["archived"]


def test_accesses_of_unknown_topics_and_of_other_shards_have_no_effect(tmp_path: Path) -> None:
    life = Life(tmp_path, shards=3)
    scopes = [f"user:u{number}" for number in range(4)]
    for scope in scopes:
        life.says(0, {"acme": owner("Aya")}, scope=scope)
    assert life.night(10) == {"archived": 4, "detached": 4}
    life.accesses(10.5, "acme", scope=scopes[2])
    life.accesses(10.5, "no-body")
    assert life.night(11) == {"restored": 1}
    states = pl.concat([life.read(TOPIC, ["scope", "state"], shard=shard) for shard in life.store.shards])
    assert states.filter(state="active")["scope"].to_list() == [scopes[2]]


def test_a_clock_that_went_back_only_makes_things_more_salient(faded: Life) -> None:
    assert faded.night(2) == {"attached": 3, "expanded": 1}
    assert faded.states("acme") == ["archived"]


# What policy protects


def test_pinned_topics_and_kinds_stay_whatever_happens(tmp_path: Path) -> None:
    life = begun(tmp_path, pinned_kinds=("deal",))
    life.says(0.2, {"acme": {"title": "Acme renewal", "topic_kind": "deal"}})
    life.night(0.5)
    life.pins("boat", 0.5)
    assert life.night(300) == {"archived": 1}
    assert (life.states("acme", "boat", "cat"), life.detached()) == (["active", "active", "archived"], [])


def test_a_pin_by_rule_protects_too_and_ends_with_the_rule(tmp_path: Path) -> None:
    life = begun(tmp_path, max_active_topics=3, **rule("pin", 'title == "Acme renewal"'))
    assert life.night(10)["archived"] == 2
    assert (life.states("acme"), life.detached()) == (["active"], ["owner"])
    life.under(**KEPT)
    assert life.night(11) == {"archived": 1, "summarised": 1, "detached": 2}


@pytest.mark.parametrize(
    ("action", "step"), [("archive", "archived"), ("detach", "detached"), ("summarise", "summarised")]
)
def test_a_rule_asks_for_its_step_alone_without_pressure(tmp_path: Path, action: str, step: str) -> None:
    life = begun(tmp_path, **CALM, **rule(action, 'title == "Acme renewal"'))
    assert life.night(0.5) == {step: 1}
    assert life.decided(step)[0]["reason"] == "rule the rule asks for it"
    assert life.night(0.6) == {}


def test_a_rule_on_use_governs_what_was_used(tmp_path: Path) -> None:
    life = begun(tmp_path, **CALM, **rule("archive", on="query_complete"))
    life.night(0.2)
    life.accesses(0.3, "acme")
    assert life.night(0.4) == {"archived": 1}
    assert life.states("acme", "boat") == ["archived", "active"]


def test_overrides_by_scope_and_kind_set_thresholds_and_half_lives(tmp_path: Path) -> None:
    life = begun(tmp_path, overrides=(
        Override(scope="user:ben", forget_salience_threshold=0.0, detach_salience_threshold=0.0),
        Override(topic_kind="deal", salience_half_life_days=1000.0),
    ))  # fmt: skip
    life.says(0.2, {"acme": {"title": "Acme renewal", "topic_kind": "deal"}})
    life.says(0.2, {"boat": owner("Ben")}, scope="user:ben")
    life.night(30)
    assert life.states("acme", "boat", "cat") == ["active", "archived", "archived"]
    assert life.states("boat", scope="user:ben") == ["active"]


def test_an_override_may_archive_sooner_than_it_detaches(tmp_path: Path) -> None:
    life = begun(
        tmp_path, salience_half_life_days=90.0, overrides=(Override(scope=AYA, forget_salience_threshold=0.9),)
    )
    assert life.night(30) == {"archived": 2}


def test_pressure_counts_the_same_for_the_ladder_and_for_the_condition(tmp_path: Path) -> None:
    life = begun(tmp_path, **CALM, **rule("archive", 'title == "Cat food"'))
    life.night(0.5)
    life.under(topic_count_soft_limit=3)
    life.says(0.1, {"cat": {"title": "Cat food", "summary": "Late"}}, imported=20)
    life.night(20)
    assert life.states("acme", "boat", "cat").count("archived") in (1, 3)


# The step itself


def test_the_size_of_a_batch_does_not_matter(faded: Life, tmp_path: Path) -> None:
    life = begun(tmp_path / "other", max_topics_for_forget_scan=1)
    assert life.night(10) == {"archived": 3, "summarised": 1, "detached": 3}
    assert life.state_hash() == faded.state_hash()


def test_the_step_answers_with_changes_and_decisions_and_repeating_it_changes_nothing(tmp_path: Path) -> None:
    life = begun(tmp_path)
    run, new = life.begun(10)
    result = forget(life.store, run, new)
    assert result.frame.schema == CHANGES
    assert result.decisions is not None
    assert result.decisions.schema == DECISION
    assert set(result.frame["change"]) == {"archived"}
    run.keep("forgetting", result, 0.0)
    with open_graph(run.graph, read_only=True) as graph:
        first = state_hash(graph)
    again = forget(life.store, run, new)
    assert again.frame.equals(result.frame)
    assert again.decisions is not None
    assert again.decisions.equals(result.decisions)
    with open_graph(run.graph, read_only=True) as graph:
        assert state_hash(graph) == first
    life.ended(run)


def test_a_step_that_died_before_it_kept_its_decisions_can_be_repeated(tmp_path: Path) -> None:
    life = begun(tmp_path)
    run, new = life.begun(10)
    forget(life.store, run, new)
    run.keep("forgetting", forget(life.store, run, new), 0.0)
    life.ended(run)


def test_a_night_of_an_empty_store_and_of_one_that_was_only_used(tmp_path: Path) -> None:
    life = Life(tmp_path)
    assert life.night(1) == {}
    life.accesses(1, "acme")
    assert life.night(2) == {}
    assert life.read(FIELD).is_empty()
    assert life.read(REVISION).is_empty()


def test_a_step_that_died_while_edges_were_written_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = begun(tmp_path)
    run, new = life.begun(10)

    def dies(*_: Any) -> None:
        raise OSError("the machine stops here")

    with monkeypatch.context() as patch:
        patch.setattr(Graph, "_copy", dies)
        with pytest.raises(OSError, match="stops here"):
            forget(life.store, run, new)
    run.keep("forgetting", forget(life.store, run, new), 0.0)
    life.ended(run)
    assert life.read(EDGE, ["kind", "detached"]).sort("kind").rows() == [("mentions", True), ("part_of", False)]
