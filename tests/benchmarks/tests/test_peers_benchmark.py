"""The peers of the matcher on small sets: the title rule, the labels of a directory, Splink."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memstate_core.revise.matching.corpus import Corpus, field_values

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def _corpus(records: list[dict[str, Any]]) -> Corpus:
    """Records of title, summary, scope, fields, source and key."""
    texts = pl.DataFrame({name: [str(record.get(name, "")) for record in records] for name in ("title", "summary")})
    topics = texts.select(
        "title",
        "summary",
        id=pl.format("topic-{}", pl.int_range(pl.len())),
        scope=pl.Series([record.get("scope", "global") for record in records]),
        topic_kind=pl.lit("note"),
        created_at=pl.lit("2026-01-01T00:00:00Z").str.to_datetime(time_zone="UTC"),
    )
    values = [(row, name, json.dumps(value), None) for row, record in enumerate(records)
              for name, value in record.get("fields", {}).items()]  # fmt: skip
    schema = {"row": pl.Int64, "name": pl.String, "value_json": pl.String, "field_type": pl.String}
    named = {
        name: pl.DataFrame(
            [(row, record[name]) for row, record in enumerate(records) if name in record],
            schema={"row": pl.Int64, name: pl.String},
            orient="row",
        )
        for name in ("source", "key")
    }
    vectors = np.zeros((len(records), 384), np.float32)
    fields = field_values(pl.DataFrame(values, schema=schema, orient="row"))
    return Corpus(topics, fields, vectors, named["source"], named["key"])


def test_the_title_rule_joins_equal_titles_with_nothing_against_them() -> None:
    from peers import unopposed

    corpus = _corpus([
        {"title": "Sprint 18: Review", "fields": {"owner": "Ann", "room": "4", "price": "$ 1.50"}},
        {"title": "sprint  18 review!", "fields": {"owner": "ANN", "price": 1.5, "date": "?"}},
        {"title": "Sprint 18 review", "fields": {"owner": "Bob"}},
        {"title": "Sprint 18 review", "scope": "user:ann"},
        {"title": "Sprint 19 review", "key": "s19"},
        {"title": "Sprint 19 review", "key": "S-19"},
        {"title": "Sprint 19 review"},
        {"title": "", "summary": "untitled"},
        {"title": "?", "summary": "untitled"},
    ])  # fmt: skip
    a, b = unopposed(corpus)
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(0, 1), (4, 6), (5, 6)]


def test_repeats_of_a_title_have_no_label_within_a_source_or_across_them() -> None:
    from labelled import repeated_titles

    corpus = _corpus([
        {"title": "Red kettle", "source": "shop/a"},
        {"title": "red  Kettle.", "source": "shop/a"},
        {"title": "Red kettle", "source": "shop/b"},
        {"title": "Red kettle"},
        {"title": "Red kettle"},
    ])  # fmt: skip
    within = repeated_titles(corpus, across_sources=False)
    across = repeated_titles(corpus, across_sources=True)
    assert within[0] == within[1]
    assert len(set(within)) == 4
    assert across[0] == across[1] == across[2]
    assert len(set(across)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("between_sources", [False, True])
def test_splink_finds_rewritten_records_and_weighs_them(between_sources: bool) -> None:
    """Of 300 records, 60 are written again with a mistyped title, another case and a rounded price."""
    from scoring import Labels, Ranking, pair_keys
    from splink_peer import predict

    draw = random.Random(3)
    records = [_product(draw) for _ in range(300)]
    corpus = _corpus(records + [_rewritten(record) for record in records[:60]])
    found = predict(corpus, between_sources=between_sources)
    labels = Labels.complete(pair_keys(np.arange(60), np.arange(300, 360), 360), 360)
    assert len(set(zip(found.a.tolist(), found.b.tolist(), strict=True))) == len(found.a)
    assert ((found.probability >= 0) & (found.probability <= 1)).all()
    assert Ranking.of(found.a, found.b, found.weight, labels).recall_at(0.95) > 0.9
    across = (found.a < 300) != (found.b < 300)
    assert across.all() == between_sources


def _product(draw: random.Random) -> dict[str, Any]:
    def word() -> str:
        return "".join(draw.choice("bdfgklmnprst") + draw.choice("aeiou") for _ in range(3))

    maker = {"maker": f"{word()} {word()}", "price": str(draw.randrange(100, 9999) / 10)}
    return {"title": f"{word()} {word()} {word()} {draw.randrange(1000)}", "fields": maker, "source": "shop/a"}


def _rewritten(product: dict[str, Any]) -> dict[str, Any]:
    title, price = product["title"], float(product["fields"]["price"])
    return {
        "title": f"{title[:15]}{title[16:]}".upper(),
        "fields": {"maker": product["fields"]["maker"], "price": str(round(price))},
        "source": "shop/b",
    }
