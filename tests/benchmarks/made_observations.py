"""Structured observations: topics of Zipf-like popularity with fields that change over time, and edges between them."""

from __future__ import annotations

import numpy as np
import polars as pl
from drawing import WINDOW_SECONDS, Numbers, Spec, any_of, choose, column, fill, mix, moment, period, pick
from made_fields import fields
from vocabulary import (
    ADJECTIVES,
    ASSOCIATIONS,
    DEVELOPMENTS,
    EXTENSIONS_DOWN,
    EXTENSIONS_UP,
    KINDS,
    NOUNS,
    OBSERVATION,
    OBSERVATION_KINDS,
    PEOPLE,
    PLACES,
    PROVENANCES,
    SUMMARIES,
)

LATE_SHARE = 0.03
EDGE_SHARE = 0.25
TWIN_ONE_IN = 50
"""Every so many topics of the rarer half is a second writing of its neighbour, for merging to find."""
SUMMARY_DAYS = 90
"""For how long a summary holds."""
CHILDREN = 8
"""Extension edges form a tree in which a topic has up to so many children."""


def topics(spec: Spec) -> pl.DataFrame:
    """Topics by number, most popular first; number modulo scopes is the scope.

    A twin shares title, summary and values with the topic that it doubles, its `origin`, and is named by an id
    instead of a key: two keys would mean two topics.
    """
    topic = np.arange(spec.topics, dtype=np.uint64)
    chosen = (mix(spec.seed, 1, topic) % TWIN_ONE_IN == 0) & (topic >= max(spec.topics // 2, spec.scopes))
    twin = chosen & ~np.roll(chosen, spec.scopes)
    origin = np.where(twin, topic - np.uint64(spec.scopes), topic)
    kind = (mix(spec.seed, 2, origin) % len(KINDS)).astype(np.int64)
    frame = pl.DataFrame({"topic": topic, "origin": origin, "twin": twin, "kind_number": kind})
    titled = frame.hstack(_title_words(spec, origin)).with_columns(
        kind=pick(KINDS, pl.col("kind_number")), scope=pl.col("topic") % spec.scopes
    )
    title = pl.concat_str(pl.col("adjective").str.to_titlecase(), "noun", pl.lit("at"), "place", separator=" ")
    return titled.with_columns(
        title=pl.when("twin").then(title.str.to_uppercase()).otherwise(title),
        name=pl.concat_str("kind", pl.lit("-"), "topic"),
    )


def visits(spec: Spec) -> pl.DataFrame:
    """Which topic each row observes and when: all topics once, the rest by Zipf's law with exponent 1."""
    rng = np.random.default_rng([spec.seed, 3])
    weights = np.cumsum(1 / np.arange(1, spec.topics + 1))
    popular = np.searchsorted(weights, rng.random(spec.rows - spec.topics) * weights[-1])
    topic = rng.permutation(np.concatenate([np.arange(spec.topics), popular])).astype(np.uint64)
    arrived = np.sort(rng.random(spec.rows)) * WINDOW_SECONDS
    late = rng.random(spec.rows) < LATE_SHARE
    observed = np.where(late, arrived * rng.random(spec.rows), arrived).astype(np.int64)
    frame = pl.DataFrame({"row": np.arange(spec.rows, dtype=np.uint64), "topic": topic, "observed": observed})
    return frame.with_columns(draw=pl.Series(mix(spec.seed, 4, column(frame, "row"))))


def lines(part: pl.DataFrame, every: pl.DataFrame, spec: Spec) -> pl.Series:
    """The lines of some visits, in their order; `every` has all topics."""
    observed = _with_draws(part.join(every, on="topic", how="left", maintain_order="left"), spec)
    observed = observed.join(fields(observed, spec), on="row", how="left", maintain_order="left")
    observed = observed.join(_edges(observed, every, spec), on="row", how="left", maintain_order="left")
    return observed.select(line=_line(spec))["line"]


def _title_words(spec: Spec, origin: Numbers) -> pl.DataFrame:
    """Adjective, noun and place of every topic; a triple repeats only after all were used."""
    vocabularies = {"adjective": ADJECTIVES, "noun": NOUNS, "place": PLACES}
    sizes = [len(words) for words in vocabularies.values()]
    total = np.uint64(np.prod(sizes))
    triples = np.random.default_rng(spec.seed).permutation(int(total))[origin % total]
    numbers = zip(vocabularies.items(), np.unravel_index(triples, sizes), strict=True)
    words = pl.DataFrame({name: np.asarray(words)[index] for (name, words), index in numbers})
    again = pl.Series(origin // total)
    numeral = pl.when(again > 0).then(pl.concat_str(pl.lit(" "), again + 1)).otherwise(pl.lit(""))
    return words.with_columns(place=pl.col("place") + numeral)


def _edges(observed: pl.DataFrame, every: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """At most one edge per row, as JSON (columns row, edges): along the scope's tree, or by popularity."""
    draw = mix(spec.seed, 6, column(observed, "row"))
    place, scope = np.divmod(column(observed, "topic").astype(np.int64), spec.scopes)
    last = (spec.topics - 1 - scope) // spec.scopes
    parent, child = (place - 1) // CHILDREN, place * CHILDREN + 1 + (draw % CHILDREN).astype(np.int64)
    popular = np.expm1((draw >> np.uint64(11)) / 2.0**53 * np.log1p(last + 1)).astype(np.int64)
    way = (draw >> np.uint64(40)) % np.uint64(4)
    target = np.select([way == 0, way == 1], [parent, child], popular)
    exists = (target >= 0) & (target <= last) & (target != place)
    found = observed.select("row", drawn=pl.Series(draw >> np.uint64(20)), way=pl.Series(way))
    found = found.with_columns(topic=pl.Series(target * spec.scopes + scope))
    found = found.filter(pl.Series(exists & (draw % np.uint64(1000) < EDGE_SHARE * 1000)))
    named = found.with_columns(pl.col("topic").cast(pl.UInt64)).join(every, on="topic", maintain_order="left")
    return named.select("row", edges=fill('{"kind":"<kind>",<named>}', {"kind": _edge_kind(), "named": _naming("to_")}))


def _edge_kind() -> pl.Expr:
    up, down, across = (pick(kinds, pl.col("drawn")) for kinds in (EXTENSIONS_UP, EXTENSIONS_DOWN, ASSOCIATIONS))
    return choose(pl.col("way"), [up, down, across, across])


def _naming(prefix: str = "") -> pl.Expr:
    """How a topic is referred to: a twin by its id, every other one by its key."""
    word = pl.when("twin").then(pl.lit("topic_id")).otherwise(pl.lit("topic_key"))
    return fill(f'"{prefix}<word>":"bench-<name>"', {"word": word, "name": pl.col("name")})


def _line(spec: Spec) -> pl.Expr:
    draw = pl.col("draw")
    words = {name: pl.col(name) for name in ("row", "scope", "kind", "title")}
    words |= {name: pl.col(name).fill_null("") for name in ("fields", "edges")}
    words["seed"] = pl.lit(str(spec.seed))
    words["named"], words["observed_at"] = _naming(), moment(pl.col("observed"))
    words["source_kind"], words["provenance"] = pick(OBSERVATION_KINDS, draw, 1), pick(PROVENANCES, draw, 2)
    words["summary"] = _summary()
    return fill(OBSERVATION, words)


def _with_draws(observed: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """Adds what decides a row's summary: `stays` with the topic, `changes` from season to season."""
    owner = (spec.seed, 7, column(observed, "origin"))
    season = period(observed, SUMMARY_DAYS, *owner)
    return observed.with_columns(
        stays=pl.Series(mix(*owner) >> np.uint64(8)), changes=pl.Series(mix(*owner, season) >> np.uint64(8))
    )


def _summary() -> pl.Expr:
    """A sentence on what a topic is, then one on its state."""
    stays, changes = pl.col("stays"), pl.col("changes")
    words = {name: pl.col(name) for name in ("adjective", "noun", "place")}
    words |= {"other": pick(NOUNS, stays, 1), "person": pick(PEOPLE, stays, 2)}
    news = {
        "town": pick(PLACES, changes, 1),
        "helper": pick(PEOPLE, changes, 2),
        "number": changes % 90 + 10,
    }
    return pl.concat_str(any_of(SUMMARIES, stays, words), any_of(DEVELOPMENTS, changes, news), separator=" ")
