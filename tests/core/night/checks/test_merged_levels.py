"""C2 for the levels of a merge's comparisons: what matching gives passes, and what evidence contradicts is named.

The damaged merges are those of a real night, with levels that the recorded model knows and the weights that it gives
them, so that no other part of the condition finds them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.model.frames import MOMENT
from memstate_core.model.ids import uuid_text
from memstate_core.night.checks.derived import Derived
from memstate_core.night.checks.merged_levels import misjudged
from memstate_core.night.checks.merged_topics import MergedTopics
from memstate_core.night.checks.recorded_comparisons import Models
from memstate_core.night.checks.suite import served_conditions
from memstate_core.revise.matching.comparison.comparisons import compare
from memstate_core.revise.matching.comparison.field_names import with_common_names
from memstate_core.run.store import open_store
from tests.core.night.checks.damage import Home, rewrite
from tests.core.revise.matching.corpora import corpus, every_pair
from tests.core.revise.nights import night, record
from tests.core.revise.test_steps import CROWD, OWNED, QUARTZ
from tests.core.strategies import day
from tests.pipeline.conftest import shared

pytestmark = pytest.mark.slow
SCOPE = "user:aya"
TEXTS = (
    "", "-", "a", "A!", "b c", "B-C", "c b", "Wi-Fi", "wi fi", "éa", "ÉA", "straße", "STRASSE", "Unknown", "n/a",
    "5", "5.0", "5.000", "5.003", "5.013", "5.100", "5.6000", "-5.003", "-5", "+5", "05", "0.05", "1,000", "1.000",
    "1000", "5 kg", "7 lb", "5e3", "20260105", "2026",
    "2026-01-05", "2026-01-09", "2026-02-30", "2026/01/05", "05.01.2026", "05/01/2026", "5 Jan 2026", "10:30", "XII",
    "m²", "AB-12", "AB 12", "ab12", "_", "a_b",
)  # fmt: skip
"""Values in notations that matching reads, and some that only look alike."""
NUMBERS = (0, 1, -1, 100, 101, 117, 120, 2.5, 2.50001, 1e9, 1e-7, True, False, None, [1], {"a": 1})
RENAMED = {"b": "a"}
"""Names under which no field is compared, with those in their place."""
OTHERWISE = "merged by a comparison on another level than evidence gives"
GROUNDLESS = "merged by a comparison of what evidence does not say of both topics"
ABSENT = "merged without a comparison that evidence gives"
TOO_HEAVY = "merged with more weight than comparisons give"
ALONE = "merged without naming the topic of its group that it agrees with"

values = st.one_of(st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.integers(90, 130), st.text(max_size=4))
texts = st.one_of(st.none(), st.sampled_from(TEXTS), st.text(min_size=1, max_size=8))
topics = st.fixed_dictionaries({
    "title": texts,
    "summary": st.one_of(st.none(), st.sampled_from(("one two three four", "One, two, three: five", "six"))),
    "fields": st.dictionaries(st.sampled_from(("a", "b", "c")), values, max_size=3),
    "created_at": st.sampled_from([0, 1, 3_599_999, 3_600_000, 3_600_001, 86_400_000, 30 * 86_400_000]).map(
        lambda after: day(1) + timedelta(milliseconds=after)
    ),
})  # fmt: skip


@given(st.lists(topics, min_size=2, max_size=6))
def test_what_matching_compares_is_what_evidence_gives(drawn: list[dict[str, Any]]) -> None:
    """All pairs of a corpus as merges, with the levels of the step."""
    of = with_common_names(corpus([{**each, "fields": stated_fields(each)} for each in drawn]), RENAMED)
    pairs, ids = every_pair(of), of.topics["id"]
    levels = compare(of, pairs)
    rows = [
        (int(pair), ids[int(pairs.a[pair])], name, float(level))
        for name, made in zip(levels.names, levels.made, strict=True)
        for pair, level in zip(made.pair, made.level, strict=True)
    ]
    compared = pl.DataFrame(rows, ["seq", "topic_id", "name", "value"], orient="row")
    relied = pl.DataFrame({"topic_id": ids.gather(pairs.a), "partner": ids.gather(pairs.b)})
    relied = relied.with_row_index("seq").with_columns(pl.col("seq").cast(pl.Int64), scope=pl.lit(SCOPE))
    found = misjudged(relied, compared, merged(drawn, ids), models())
    assert pl.concat(found).is_empty(), pl.concat(found).rows()


def stated_fields(topic: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a topic, of those with null none: they are not current."""
    return {name: value for name, value in sorted(topic["fields"].items()) if value is not None}


def merged(drawn: list[dict[str, Any]], ids: pl.Series) -> MergedTopics:
    """Topics as evidence states them, all of one group."""
    parts = [
        (topic_id, "topic", name, json.dumps(topic[name]))
        for topic_id, topic in zip(ids, drawn, strict=True)
        for name in ("title", "summary")
        if topic[name] is not None
    ]
    fields = [
        (topic_id, "field", name, json.dumps(value))
        for topic_id, topic in zip(ids, drawn, strict=True)
        for name, value in topic["fields"].items()
    ]
    schema = dict.fromkeys(("topic_id", "part", "name", "value_json"), pl.String)
    created = [topic["created_at"] for topic in drawn]
    homes = pl.DataFrame({"topic_id": ids, "at": created}, schema_overrides={"at": MOMENT})
    nothing = pl.DataFrame()
    names = pl.DataFrame(schema={"alias": pl.String, "topic_id": pl.String})
    ends = pl.DataFrame(schema={"dropped": pl.String, "survivor": pl.String})
    before = Derived(nothing, ends, nothing, names, homes, nothing)
    members = pl.DataFrame({"topic_id": ids, "into": [ids[0]] * len(ids)})
    return MergedTopics(nothing, before, members, nothing, nothing, pl.DataFrame(parts + fields, schema, orient="row"))


def models() -> Models:
    scopes = pl.DataFrame({"scope": [SCOPE], "prior": [0.0], "has_names": [True]})
    names = {"scope": [SCOPE] * len(RENAMED), "name": list(RENAMED), "common": list(RENAMED.values())}
    return Models(scopes, pl.DataFrame(), pl.DataFrame(names))


@pytest.mark.parametrize(
    ("one", "other", "name", "levels"),
    [
        ({"fields": {"a": 100}}, {"fields": {"a": 120}}, "field:a", {1}),
        ({"fields": {"a": 100}}, {"fields": {"a": "101"}}, "field:a", {4}),
        ({"fields": {"a": 100}}, {"fields": {"a": 100.0}}, "field:a", {6}),
        ({"fields": {"a": 100}}, {"fields": {"a": 200}}, "field:a", {0}),
        ({"fields": {"a": "40.000"}}, {"fields": {"a": "40.0300"}}, "field:a", {5}),
        ({"fields": {"a": "40.000"}}, {"fields": {"a": 40.125}}, "field:a", {4}),
        ({"fields": {"a": "40.000"}}, {"fields": {"a": "40.03"}}, "field:a", {4}),
        ({"fields": {"a": "-40.000"}}, {"fields": {"a": "40.000"}}, "field:a", {0}),
        ({"fields": {"a": "2026-01-05"}}, {"fields": {"a": "2026-01-10"}}, "field:a", {2}),
        ({"fields": {"a": "2026-01-05"}}, {"fields": {"b": "2026-01-05"}}, "field:a", {6}),
        ({"fields": {"a": "red"}}, {"fields": {"a": "Red!"}}, "field:a", {6}),
        ({"fields": {"a": "red"}}, {"fields": {"a": "ink"}}, "field:a", {0}),
        ({"fields": {"a": "red"}}, {"fields": {"a": "reed"}}, "field:a", set(range(7))),
        ({"fields": {"a": "red"}}, {"fields": {}}, "field:a", set()),
        ({"fields": {"a": "red"}}, {"fields": {"a": None}}, "field:a", set()),
        ({"title": "Red ink"}, {"title": "red INK"}, "title", {9}),
        ({"title": "Red ink"}, {"title": "Blot"}, "title", set(range(7))),
        ({"title": "Red ink"}, {"title": "Ink"}, "title", set(range(10))),
        ({"summary": "one two three"}, {"summary": "one"}, "summary", set(range(9))),
        ({"summary": "one two three"}, {}, "summary", set()),
        ({}, {"created_at": day(3)}, "time", {2}),
        ({}, {"created_at": day(2)}, "time", {1, 2}),
    ],
)
def test_levels_that_evidence_gives(one: dict[str, Any], other: dict[str, Any], name: str, levels: set[int]) -> None:
    """Of a comparison on any level, those are accepted."""
    nothing = {"title": None, "summary": None, "fields": {}, "created_at": day(1)}
    ids = pl.Series(["x", "y"])
    topics = merged([nothing | one, nothing | other], ids)
    pair = pl.DataFrame({"seq": [0], "scope": [SCOPE], "topic_id": ["y"], "partner": ["x"]})

    def accepted(level: int) -> bool:
        compared = pl.DataFrame({"seq": [0], "topic_id": ["y"], "name": [name], "value": [float(level)]})
        found = pl.concat(misjudged(pair, compared, topics, models()))["problem"]
        return OTHERWISE not in found and GROUNDLESS not in found

    assert {level for level in range(10) if accepted(level)} == levels


# Damage


@pytest.fixture(scope="session")
def compared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a night merged two topics with an owner and a date, beside others with a colour."""

    def made(root: Path) -> None:
        store = open_store(root, {})
        crowd = {name: topic | {"fields": [{"name": "colour", "value": name}]} for name, topic in CROWD.items()}
        record(store, {"one": QUARTZ | OWNED, "other": QUARTZ | OWNED} | crowd, 1)
        night(store, 2)

    return shared(tmp_path_factory, "compared", made)


@pytest.fixture
def compared(compared_home: Path, tmp_path: Path) -> Home:
    return Home(shutil.copytree(compared_home, tmp_path / "home"))


def problems(home: Home) -> list[tuple[str, str]]:
    """What the conditions find, by condition."""
    checked = served_conditions(home.store, home.snapshot)
    assert checked is not None
    return [(name[:2], text) for name, check in checked.items() for _, text in check.violations.rows()]


def relevel(home: Home, change: Mapping[str, float | None], **payload: Any) -> None:
    """Gives comparisons of the merge other levels, with the model's weights for them, or removes them.

    The merge has a weight that all of these give.
    """
    rows = home.store.ledger.scan("transitions").collect()
    (model,) = map(json.loads, rows.filter(pl.col("kind") == "match_model_fitted")["payload_json"])
    (made,) = map(json.loads, rows.filter(pl.col("kind") == "merged")["payload_json"])
    kept = [each for each in made["features"] if each["name"] not in change]
    added = [
        {"name": name, "value": level, "weight": model["weights"][name][-1][int(level)]}
        for name, level in change.items()
        if level is not None
    ]
    rewrite(pl.col("kind") == "merged", features=kept + added, weight=3.0, probability=0.8, **payload)(home)


def test_a_nights_merge_passes(compared: Home) -> None:
    relevel(compared, {})
    assert problems(compared) == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"title": 8}, [OTHERWISE]),
        ({"title": 5}, [OTHERWISE]),
        ({"field:owner": 5}, [OTHERWISE]),
        ({"field:since": 4}, [OTHERWISE]),
        ({"time": 1}, [OTHERWISE]),
        ({"field:colour": 6}, [GROUNDLESS]),
        ({"field:since": None}, [ABSENT]),
        ({"time": None}, [ABSENT]),
        ({"title": None, "rarity": None}, [TOO_HEAVY, ABSENT]),
        ({"rarity": None}, [ABSENT]),
    ],
)
def test_a_level_that_evidence_does_not_give_is_named(
    compared: Home, change: dict[str, float | None], named: list[str]
) -> None:
    relevel(compared, change)
    assert problems(compared) == [("C2", text) for text in named]


@pytest.mark.parametrize("partner", [None, "crowd-Oslo-exam"])
def test_a_merge_names_a_topic_of_its_group(compared: Home, partner: str | None) -> None:
    relevel(compared, {}, partner=partner and uuid_text("observation", SCOPE, partner))
    assert problems(compared) == [("C2", ALONE)]


def test_a_merge_of_a_version_that_recorded_no_names_of_fields_passes(compared: Home) -> None:
    relevel(compared, {"time": 1})
    rows = compared.store.ledger.scan("transitions").collect().filter(pl.col("kind") == "match_model_fitted")
    model = {name: value for name, value in json.loads(rows["payload_json"][0]).items() if name != "field_names"}
    replace = pl.when(pl.col("kind") == "match_model_fitted").then(pl.lit(json.dumps(model))).otherwise("payload_json")
    compared.ledger("transitions", lambda every: every.with_columns(payload_json=replace))
    assert problems(compared) == []
