"""Splink 4 on DuckDB as a peer: an unlabelled Fellegi-Sunter model, set up as its documentation recommends.

The set-up is one for all data sets and knows no column by name. Texts are cleaned first. The columns are the title,
the summary where it adds words to title and fields, and every field that a tenth of the records have. Texts are
compared by Jaro-Winkler similarity with term frequencies, numbers by relative and dates by absolute difference.
Candidates share a word that is rare among titles, the first letters of the title, or a column's value. The share of
matches comes from deterministic rules, u from random pairs, m from expectation maximisation on two blocking rules.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl
import splink.comparison_level_library as cll
import splink.comparison_library as cl
from labelled import plain
from scoring import Ints, Reals
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

from memstate_core.revise.matching.corpus import Corpus

MIN_SHARE = 0.1
"""The share of the records that must have a value for a column of its own; also the share of values that must be
numbers or dates for a column not to be text, counted from above."""
RARE = 100
"""Titles that may share a word for it to bring candidates."""
SUMMARY_LETTERS = 100
"""Letters of a summary that are compared: Jaro-Winkler is for short texts, and takes minutes on long ones."""
FIRST_LETTERS = 8
PREFIXES = (32, 24, 16, 12, FIRST_LETTERS)
"""First letters of titles of which the longest with enough pairs is the first blocking rule of training."""
PAIRS_PER_RECORD = 20
"""Candidates that a column may bring, by record, for its equal values to be a blocking rule."""
RECALL = 0.7
"""The recall of the deterministic rules that the documentation's examples assume."""
RANDOM_PAIRS = 1e6
"""Random pairs for u, the default; more take minutes on long texts."""
SEED = 7
TEXT, NUMBER, DATE = "text", "number", "date"


@dataclass(frozen=True)
class Predicted:
    """Candidates (a, b), each once, the probability that both are the same, and its logit to base 2 (pairs,)."""

    a: Ints
    b: Ints
    probability: Reals
    weight: Reals


def predict(corpus: Corpus, *, between_sources: bool = False) -> Predicted:
    """Scores the candidates of a corpus.

    Args:
        corpus: the records.
        between_sources: links the sources and takes each to be free of duplicates, which Splink cannot find out
            itself; every record must have a source then.
    """
    logging.getLogger("splink").setLevel(logging.ERROR)  # which reports every iteration
    records, types = _records(corpus)
    if between_sources:
        records = records.join(corpus.sources, on="row", maintain_order="left")
    tables = records.partition_by("source", include_key=False) if between_sources else [records]
    settings = _settings(records, types, "link_only" if between_sources else "dedupe_only")
    linker = Linker([table.to_arrow() for table in tables], settings, db_api=DuckDBAPI(), set_up_basic_logging=False)
    _train(linker, records, types)
    scored = linker.inference.predict().as_duckdbpyrelation().pl()
    a, b = (scored[name].cast(pl.Int64).to_numpy() for name in ("row_l", "row_r"))
    return Predicted(a, b, scored["match_probability"].to_numpy(), scored["match_weight"].to_numpy())


# --- columns


def _records(corpus: Corpus) -> tuple[pl.DataFrame, dict[str, str]]:
    """Cleaned records with columns row, words (rare ones of the title) and those compared, and the latter's types."""
    enough = corpus.remainder[1]
    texts = {"title": plain(pl.col("title")), "summary": plain(pl.col("summary")).str.head(SUMMARY_LETTERS)}
    base = corpus.topics.select(row=pl.int_range(pl.len()), **texts)
    fields = {f"field_{index}": values for index, values in enumerate(_fields(corpus))}
    for name, values in fields.items():
        base = base.join(values.rename({"value": name}), on="row", how="left", maintain_order="left")
    base = base.with_columns(pl.col(pl.String).replace("", None))
    base = base if enough.mean() >= MIN_SHARE else base.drop("summary")
    types = {name: _type_of(base[name]) for name in base.columns if name != "row"}
    return base.join(_rare_words(base), on="row", how="left", maintain_order="left"), types


def _fields(corpus: Corpus) -> Iterator[pl.DataFrame]:
    """The values of each frequent field (columns row, value) as texts, numbers or dates."""
    for _, values in corpus.fields.group_by("name", maintain_order=True):
        if values.height < MIN_SHARE * len(corpus):
            continue
        given = values.filter(plain(pl.col("text")) != "")
        forms = given.select(pl.col("number", "day").is_not_null().mean()).row(0, named=True)
        if (forms["number"] or 0) >= 1 - MIN_SHARE:
            yield values.select("row", value="number")
        elif (forms["day"] or 0) >= 1 - MIN_SHARE:
            yield values.select("row", value=pl.col("day").round().cast(pl.Int32).cast(pl.Date))
        else:
            yield values.select("row", value=plain(pl.col("text")))


def _type_of(values: pl.Series) -> str:
    return TEXT if values.dtype == pl.String else DATE if values.dtype == pl.Date else NUMBER


def _rare_words(base: pl.DataFrame) -> pl.DataFrame:
    """The words of each title that few titles share (columns row, words)."""
    words = base.select("row", words=pl.col("title").str.split(" ").list.unique()).explode("words").drop_nulls()
    rare = words.filter(pl.len().over("words").is_between(2, RARE))
    return rare.group_by("row").agg("words")


# --- model


def _settings(records: pl.DataFrame, types: dict[str, str], link_type: str) -> SettingsCreator:
    equal = [name for name in types if 0 < _pairs_sharing(records, name) <= PAIRS_PER_RECORD * records.height]
    return SettingsCreator(
        link_type=link_type,
        unique_id_column_name="row",
        comparisons=[_comparison(name, form) for name, form in types.items()],
        blocking_rules_to_generate_predictions=[
            block_on(f"substr(title, 1, {FIRST_LETTERS})"),
            *(block_on(name) for name in equal if name != "title"),
            block_on("words", arrays_to_explode=["words"]),
        ],
    )


def _comparison(name: str, form: str) -> Any:
    if form == TEXT:
        return cl.JaroWinklerAtThresholds(name, [0.9, 0.8, 0.7]).configure(term_frequency_adjustments=True)
    if form == DATE:
        return cl.AbsoluteDateDifferenceAtThresholds(
            name, input_is_string=False, metrics=["day", "month", "year"], thresholds=[1, 1, 1]
        )
    levels = [cll.PercentageDifferenceLevel(name, share) for share in (0.01, 0.1)]
    exact = cll.ExactMatchLevel(name, term_frequency_adjustments=True)
    return cl.CustomComparison([cll.NullLevel(name), exact, *levels, cll.ElseLevel()], output_column_name=name)


def _train(linker: Any, records: pl.DataFrame, types: dict[str, str]) -> None:
    """Estimates the share of matches, u from random pairs, and m in two sessions."""
    others = [name for name in types if name != "title"]
    same = [("title", name) for name in others] or [("title",)]
    if any(_pairs_sharing(records, *columns) for columns in same):
        rules = [block_on(*columns) for columns in same]
        linker.training.estimate_probability_two_random_records_match(rules, recall=RECALL)
    linker.training.estimate_u_using_random_sampling(max_pairs=RANDOM_PAIRS, seed=SEED)
    for rule in _training_rules(records, others):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(rule))


def _training_rules(records: pl.DataFrame, others: list[str]) -> list[str]:
    """The tightest rule on the title, and on another column, with enough pairs: matches must not be too few of them.

    A session trains the columns that its rule leaves out, so a title alone has none.
    """
    heads = (pl.col("title").str.head(letters).alias(str(letters)) for letters in PREFIXES)
    starts = records.select(pl.col("^source$"), *heads)
    sharing = {name: _pairs_sharing(records, name) for name in others}
    enough = max(1, MIN_SHARE * records.height)
    prefixes = [name for name in map(str, PREFIXES) if _pairs_sharing(starts, name) >= enough][:1]
    tight = sorted((name for name in others if sharing[name] >= enough), key=lambda name: sharing[name])
    return [f"substr(title, 1, {letters})" for letters in prefixes if others] + tight[:1]


def _pairs_sharing(records: pl.DataFrame, *columns: str) -> int:
    """Pairs with equal values of all these columns; where records have a source, pairs of different ones."""
    given = records.drop_nulls(columns)
    within = _pairs_in_groups(given, *columns, "source") if "source" in given.columns else 0
    return _pairs_in_groups(given, *columns) - within


def _pairs_in_groups(records: pl.DataFrame, *columns: str) -> int:
    sizes = records.group_by(columns).len()["len"].cast(pl.Int64)
    return int((sizes * (sizes - 1) // 2).sum())
