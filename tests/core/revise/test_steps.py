"""The steps `duplicate_pairs` and `merges` in nights over a real ledger, a real graph and the real model."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from msgspec import json as msgjson

from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import PAIRS
from memstate_core.night.verify import verify_store
from memstate_core.revise.matching.clustering import in_group
from memstate_core.run.store import Store, open_store
from tests.core.revise.nights import Night, Topic, ids, night, pair, record, topics, transitions
from tests.core.revise.test_verdicts import judged

pytestmark = pytest.mark.slow

QUARTZ = {"title": "Quartz lagoon harvest", "summary": "Signing with the northern partner at the harbour office"}
OWNED = {"fields": [{"name": "owner", "value": "Aya"}, {"name": "since", "value": "2019-03-04"}]}
OTHER = {"fields": [{"name": "owner", "value": "Ben"}, {"name": "since", "value": "1987-11-30"}]}
WEEKLY = {"title": "Weekly report"}
SPRING, LIFT = {"summary": "Sales rose in spring"}, {"summary": "The lift in the southern hall is broken again"}

TOPICS: dict[str, Topic] = {
    "same-1": QUARTZ | OWNED,
    "same-2": QUARTZ | OWNED,
    "same-3": QUARTZ | OWNED,
    "week-1": WEEKLY | SPRING | OWNED,
    "week-2": WEEKLY | LIFT | OTHER,
    "key-1": {"title": "Copper fjord", "summary": "Moving the archive", "topic_key": "crm/1"} | OWNED,
    "key-2": {"title": "Copper fjord", "summary": "Moving the archive", "topic_key": "crm/2"} | OWNED,
}
PLACES = ("Oslo", "Graz", "Lyon", "Turin", "Cork", "Bergen", "Porto", "Ghent")
TASKS = ("roof repair", "tax return", "choir rehearsal", "bicycle tour", "water bill", "exam", "boat race", "vaccine")
CROWD: dict[str, Topic] = {
    f"crowd-{place}-{task}": {"title": f"{task} {place}", "summary": f"What {place} needs for the {task}"}
    for place in PLACES
    for task in TASKS
}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Night]:
    """A store after its first night, and that night."""
    home = tmp_path_factory.mktemp("steps") / "home"
    store = open_store(home, {})
    record(store, TOPICS | CROWD, 1)
    return home, night(store, 2)


@pytest.fixture
def store(first: tuple[Path, Night], tmp_path: Path) -> Store:
    """A copy of that store."""
    return open_store(Path(shutil.copytree(first[0], tmp_path / "home")), {})


# The first night


def test_equal_topics_become_one_and_the_first_of_them_survives(first: tuple[Path, Night], store: Store) -> None:
    placed, rows = ids(store), topics(store)
    assert placed["same-1"] == placed["same-2"] == placed["same-3"]
    assert rows.filter(pl.col("id") == placed["same-1"])["state"].item() == "active"
    gone = rows.filter(pl.col("state") == "merged")
    assert gone["merged_into"].to_list() == [placed["same-1"]] * 2
    changes = dict(first[1].merged.frame.select("topic_id", "change").iter_rows())
    assert {changes[topic] for topic in gone["id"]} == {"merged"}
    assert placed["same-1"] in changes


def test_nothing_else_is_merged(first: tuple[Path, Night], store: Store) -> None:
    placed = ids(store)
    assert first[1].merged.counts["merges"] == 2
    assert len({*placed.values()}) == len(placed) - 2


def test_the_same_title_with_conflicting_fields_is_two_and_goes_to_review(
    first: tuple[Path, Night], store: Store
) -> None:
    placed = ids(store)
    assert placed["week-1"] != placed["week-2"]
    assert pair(first[1].found, placed["week-1"], placed["week-2"]) == ["review"]


def test_different_keys_stay_two_though_all_else_agrees(first: tuple[Path, Night], store: Store) -> None:
    one, other = ids(store)["key-1"], ids(store)["key-2"]
    assert one != other
    assert pair(first[1].found, one, other) != ["merge"]


def test_the_decision_says_how_sure_it_was_and_why(first: tuple[Path, Night], store: Store) -> None:
    rows = transitions(store, "merged")
    assert rows.height == 2
    for payload in map(msgjson.decode, rows["payload_json"]):
        assert payload["survivor"] == ids(store)["same-1"]
        assert payload["dropped_title"] == QUARTZ["title"]
        assert store.settings.policy.merge_probability <= payload["probability"] <= 1
        assert {"title", "meaning", "summary", "rank", "field:owner"} <= {one["name"] for one in payload["features"]}
        reading = payload["reading"]
        assert reading["agree"] == ["title", "summary", "field:owner", "field:since"]
        assert (reading["differ"], reading["only"]) == ([], [])
        assert [reading[name] for name in ("shared", "shared_by", "shared_in_group")] == ["title", 1, 1]
    assert first[1].merged.tables["merged"]["reading"].unique().to_list() == [
        "title, summary, owner and since agree, nothing differs; 1 other has the same title, in this group"
    ]
    assert first[1].merged.decisions is not None
    assert first[1].merged.decisions.schema == DECISION


def test_the_expected_number_of_false_merges_is_the_doubt_about_merged_pairs(first: tuple[Path, Night]) -> None:
    found, merged = first[1].found, first[1].merged
    sure = found.frame.filter(pl.col("band") == "merge")
    assert found.frame.schema == PAIRS
    assert sure.height == 3
    assert (found.frame["a"] < found.frame["b"]).all()
    likely = in_group(*(sure[name].to_numpy() for name in ("a", "b", "probability")))
    assert merged.counts["expected_false_merges"] == pytest.approx((1 - likely).sum(), abs=0.005)


def test_the_model_is_recorded_with_the_terms_of_its_fit(first: tuple[Path, Night], store: Store) -> None:
    (payload,) = map(msgjson.decode, transitions(store, "match_model_fitted")["payload_json"])
    assert payload["policy"] == store.settings.policy.digest()
    assert payload["embedding_model"] == store.encoder.model
    assert 0 < payload["pairs"] <= first[1].found.counts["candidates"]
    assert 0 < payload["match_rate"] < 1
    assert {"title", "field:owner", "field:since"} <= payload["weights"].keys()
    assert [len(levels) for levels in payload["weights"]["title"]] == [10] * 3


# Later nights


def test_when_nothing_has_changed_nothing_is_done(store: Store) -> None:
    again = night(store, 3)
    assert again.found.counts["candidates"] == again.merged.counts["merges"] == 0
    assert again.found.frame.is_empty()
    assert again.found.frame.schema == PAIRS
    assert transitions(store, "match_model_fitted").height == 1


def test_a_changed_policy_means_a_new_fit(store: Store) -> None:
    strict = open_store(store.home.root, {"MEMSTATE_POLICY_MERGE_PROBABILITY": "0.95"})
    assert night(strict, 3).found.counts["candidates"] > 0
    assert night(strict, 4).found.counts["candidates"] == 0
    assert transitions(strict, "match_model_fitted").height == 2


def test_a_late_duplicate_joins_the_survivor(store: Store) -> None:
    record(store, {"same-4": QUARTZ | OWNED}, 3)
    assert night(store, 4).merged.counts["merges"] == 1
    assert ids(store)["same-4"] == ids(store)["same-1"]


def test_a_late_duplicate_that_a_person_judged_different_does_not(store: Store) -> None:
    record(store, {"same-4": QUARTZ | OWNED}, 3)
    strict = open_store(store.home.root, {"MEMSTATE_POLICY_MERGE_PROBABILITY": "1"})
    night(strict, 4)
    one, other = sorted((ids(store)["same-1"], ids(store)["same-4"]))
    assert one != other
    after = night(store, 5, [judged(one, other, "different")])
    assert after.found.counts["kept_apart"] == 2, "this pair, and the one whose keys differ"
    assert after.merged.counts["merges"] == 0
    assert ids(store)["same-1"] != ids(store)["same-4"]


# Near-identical families


def family(unit: int, revision: int) -> Topic:
    values = {
        "site": ("Lyon", "Oslo", "Graz")[unit % 3],
        "keeper": ("Aya", "Ben", "Cleo", "Dana", "Edo")[unit * revision % 5],
        "installed": str(1990 + (unit * 7 + revision) % 35),
    }
    fields = [{"name": name, "value": value} for name, value in values.items()]
    return {"title": f"Unit {unit} rev {revision}", "summary": "Handbook of the machine in the hall", "fields": fields}


def test_of_300_near_identical_topics_only_exact_repeats_are_merged(tmp_path: Path) -> None:
    families = {f"u{unit}-{rev}": family(unit, rev) for unit in range(1, 101) for rev in (1, 2, 3)}
    repeats = {f"again-{name}": topic for name, topic in [*families.items()][::10]}
    store = open_store(tmp_path / "home", {})
    record(store, families | repeats, 1)
    merged = night(store, 2).merged
    placed = ids(store)
    assert len({placed[name] for name in families}) == len(families)
    right = [name for name in repeats if placed[name] == placed[name.removeprefix("again-")]]
    assert merged.counts["merges"] == len(right)
    assert len(right) > 0.9 * len(repeats)


def test_a_merge_of_identical_topics_beside_siblings_passes_every_condition(tmp_path: Path) -> None:
    store = open_store(tmp_path / "home", {})
    siblings = {
        f"{word}-{n}": {"title": f"Weekly report on {word} {n}"} for n in range(5) for word in ("water", "heat")
    }
    record(store, {"one": {"title": "Weekly report"}, "other": {"title": "Weekly report"}, **siblings}, 1)
    assert night(store, 2).merged.counts["merges"] == 1
    found = [each for verdicts in verify_store(store).values() for each in verdicts]
    assert found
    assert all(each.passed for each in found), found
