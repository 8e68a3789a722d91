"""C2 for the comparisons of merges that a run made by itself: evidence gives their levels.

A merge records how much the two topics of its strongest pair agree in titles, fields, summaries and times
(`memstate_core.revise.matching.comparison`). What evidence says of the two before the merge bounds these levels, even
without the rarity of words among other topics: values of the same words agree fully, the distance of two numbers, dates
or creations gives one level, texts without a common letter have a low one, and a field is compared if both topics have
it, under names that the model calls one. Texts that are alike may have any level, and any two topics a like meaning.
"""

from __future__ import annotations

import polars as pl

from memstate_core.night.checks.check import violating
from memstate_core.night.checks.derived import Derived
from memstate_core.night.checks.merged_topics import MergedTopics
from memstate_core.night.checks.recorded_comparisons import Models

_FIELD = "field:"
_EDGES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.97)
"""Similarities of values that separate levels."""
_FAR_NUMBERS, _FAR_DAYS, _NEXT = 0.2, 10.0, 0.8
"""Relative distance of numbers and days between dates from which they have nothing in common, and the similarity of
those that are next to each other."""
_STEPS, _MOST_MEASURED = (0.2, 0.06, 0.02, 0.005, 0.001), 0.9
"""Relative distances of numbers of three decimals and more up to which they are ever closer, by equal parts of the
similarity of the closest."""
_DAY = 86_400_000
_TIME_EDGES = (_DAY // 24, _DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY)
"""Milliseconds between the creations of two topics that separate levels."""
_ONE_TITLE, _NO_LETTER, _NEAR = 9, 6, 5
"""Levels: that of one title, the highest of titles without a common letter, the lowest with a comparison of rarity."""
_MOST_SUMMARY, _RAREST = 8, 3
"""The highest levels of summaries and of rarity."""
_ROUNDED = 1e-9
_MEASURED = r"\.[0-9]{3,}$"
_NUMBER, _DATE = r"^-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,6})?$", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_OTHER_SIGN = r"[^\x00-\x7f]"
_ENDS = ["seq", "one", "other"]


def misjudged(pairs: pl.DataFrame, compared: pl.DataFrame, topics: MergedTopics, models: Models) -> list[pl.DataFrame]:
    """Merges with comparisons that evidence does not give.

    Those of earlier versions, whose models do not say under which names fields were compared, are left out.

    Args:
        pairs: on which merges rely (columns seq, scope, topic_id, partner).
        compared: their comparisons (columns seq, topic_id, name, value).
        topics: the topics of the merges.
        models: the models of their scopes.
    """
    known = pairs.join(models.scopes.filter("has_names"), on="scope", how="semi")
    ends = _ends(known, topics)
    own = compared.join(ends, on="seq", how="semi")
    expected = pl.concat([
        _fields(ends, topics, models.names),
        _summaries(ends, topics),
        _titles(ends, topics),
        _times(ends, topics.before),
        _rarity(own),
    ])  # fmt: skip
    depends = pl.col("name").str.starts_with(_FIELD) | pl.col("name").is_in(["summary", "rarity"])
    groundless = own.filter(depends).join(expected, on=["seq", "name"], how="anti")
    bounded = own.join(expected, on=["seq", "name"])
    missing = known.join(expected.filter("certain").join(own, on=["seq", "name"], how="anti"), on="seq", how="semi")
    found = {
        "merged without naming the topic of its group that it agrees with": known.join(ends, on="seq", how="anti"),
        "merged by a comparison of what evidence does not say of both topics": groundless,
        "merged by a comparison on another level than evidence gives": bounded.filter(
            ~pl.col("value").is_between("lowest", "highest")
        ),
        "merged without a comparison that evidence gives": missing,
    }
    return [violating(rows, "topic_id", text) for text, rows in found.items()]


def _ends(pairs: pl.DataFrame, topics: MergedTopics) -> pl.DataFrame:
    """The two topics of pairs that are of one group (columns seq, scope, one, other)."""
    both = pairs.select("seq", "scope", topics.before.answering(pl.col("topic_id", "partner")))
    group = topics.members.select("topic_id", "into")
    both = both.join(group, on="topic_id").join(group.rename({"topic_id": "partner"}), on=["partner", "into"])
    return both.select("seq", "scope", one="topic_id", other="partner").filter(pl.col("one") != pl.col("other"))


def _of_both(ends: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """What both topics of a pair have under one name (columns seq, name, and the others of `values`, also with `_b`).

    Args:
        ends: the pairs.
        values: columns topic_id, name, and others.
    """
    one = ends.select(_ENDS).join(values, left_on="one", right_on="topic_id")
    return one.join(values, left_on=["other", "name"], right_on=["topic_id", "name"], suffix="_b")


def _bounds(rows: pl.DataFrame, lowest: pl.Expr, highest: pl.Expr, certain: pl.Expr) -> pl.DataFrame:
    """Columns seq, name, lowest, highest (levels), certain (whether the comparison is made in any case)."""
    levels = lowest.cast(pl.Float64), highest.cast(pl.Float64)
    return rows.select("seq", "name", lowest=levels[0], highest=levels[1], certain=certain.fill_null(False))


def _fields(ends: pl.DataFrame, topics: MergedTopics, names: pl.DataFrame) -> pl.DataFrame:
    """The bounds of fields that both topics of a pair have; values that may mean that there is none are not certain."""
    scopes = pl.concat([ends.select("scope", topic_id=end) for end in ("one", "other")]).unique()
    stated = topics.stated.filter((pl.col("part") == "field") & (pl.col("value_json") != "null"))
    named = stated.join(scopes, on="topic_id").join(names, on=["scope", "name"], how="left")
    named = named.with_columns(name=_FIELD + pl.coalesce("common", "name"))
    both = _of_both(ends, _texts(named))
    known = both.with_columns(similarity=_similarity())
    bounds = (_level(pl.col("similarity") + error, _EDGES) for error in (-_ROUNDED, _ROUNDED))
    lowest, highest = (bound.fill_null(other) for bound, other in zip(bounds, (0, len(_EDGES)), strict=True))
    return _bounds(known, lowest, highest, _written(pl.col("text")) & _written(pl.col("text_b")))


def _texts(stated: pl.DataFrame) -> pl.DataFrame:
    """The text of each name of a topic, null if evidence states several (columns topic_id, name, text)."""
    raw = pl.col("value_json")
    quoted = raw.str.starts_with('"')
    decoded = pl.when(quoted).then(raw).otherwise(pl.lit('""')).str.json_decode(pl.String)
    texts = stated.with_columns(text=pl.when(quoted).then(decoded).otherwise(raw))
    single = pl.col("text").n_unique() == 1
    return texts.group_by("topic_id", "name").agg(text=pl.when(single).then(pl.col("text").first()))


def _similarity() -> pl.Expr:
    """The similarity of two texts of a field, null if it depends on other topics."""
    texts = pl.col("text"), pl.col("text_b")
    one, other = (pl.when(text.str.contains(_NUMBER)).then(text.cast(pl.Float64, strict=False)) for text in texts)
    day, day_b = (pl.when(text.str.contains(_DATE)).then(text.str.to_date("%Y-%m-%d", strict=False)) for text in texts)
    days = (day - day_b).abs().dt.total_days()
    relative = (one - other).abs() / pl.max_horizontal(one.abs(), other.abs(), 1e-12)
    near = [_NEXT * (1 - far).clip(lower_bound=0) for far in (days / _FAR_DAYS, relative / _FAR_NUMBERS)]
    measured = pl.all_horizontal(text.str.contains(_MEASURED) for text in texts) & relative.is_not_null()
    steps = pl.sum_horizontal(*((relative <= far).cast(pl.Float64) for far in _STEPS)) / len(_STEPS)
    near.insert(0, pl.when(measured).then(_MOST_MEASURED * steps))
    wordless = pl.when(_no_letter(*texts) & ~(_written(texts[0]) & _written(texts[1]))).then(0.0)
    return pl.when(_same_words(*texts) | (one == other)).then(1.0).otherwise(pl.coalesce(*near, wordless))


def _written(text: pl.Expr) -> pl.Expr:
    """Whether a text has a digit, as numbers and dates do."""
    return text.str.contains("[0-9]")


def _same_words(text: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Whether two texts are equal, or have the same words in the same order; not known of other signs than letters."""
    words = [
        _without(each, f"[0-9]|{_OTHER_SIGN}").str.to_lowercase().str.extract_all("[a-z]+") for each in (text, other)
    ]
    return (text == other) | ((words[0] == words[1]) & (words[0].list.len() > 0)).fill_null(False)


def _no_letter(text: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Whether two texts have no letter and no digit in common; not known of letters beside those of English."""
    letters = [_without(each, _OTHER_SIGN).str.to_lowercase().str.extract_all("[a-z0-9]") for each in (text, other)]
    return letters[0].list.set_intersection(letters[1]).list.len() == 0


def _without(text: pl.Expr, signs: str) -> pl.Expr:
    """A text, null if a pattern of signs occurs in it."""
    return pl.when(~text.str.contains(signs)).then(text)


def _level(value: pl.Expr, edges: tuple[float, ...]) -> pl.Expr:
    """The level of a similarity or distance; null if it is."""
    return pl.sum_horizontal([(value >= edge).cast(pl.Int64) for edge in edges], ignore_nulls=False)


def _parts(ends: pl.DataFrame, topics: MergedTopics, name: str) -> pl.DataFrame:
    """The titles, or the summaries, of pairs of which evidence gives both topics one (columns of `_of_both`)."""
    return _of_both(ends, _texts(topics.stated.filter((pl.col("part") == "topic") & (pl.col("name") == name))))


def _summaries(ends: pl.DataFrame, topics: MergedTopics) -> pl.DataFrame:
    return _bounds(_parts(ends, topics, "summary"), pl.lit(0), pl.lit(_MOST_SUMMARY), pl.lit(False))


def _titles(ends: pl.DataFrame, topics: MergedTopics) -> pl.DataFrame:
    """The bounds of titles; a topic without one in evidence is called by its key."""
    both = ends.select("seq", name=pl.lit("title")).join(_parts(ends, topics, "title"), on=["seq", "name"], how="left")
    text, other = pl.col("text"), pl.col("text_b")
    lowest = pl.when(_same_words(text, other) & text.str.contains("[A-Za-z0-9]")).then(_ONE_TITLE).otherwise(0)
    highest = pl.when(_no_letter(text, other)).then(_NO_LETTER).otherwise(_ONE_TITLE)
    return _bounds(both, lowest, highest, pl.lit(True))


def _times(ends: pl.DataFrame, before: Derived) -> pl.DataFrame:
    """The bounds of the time between creations; a distance that rounding may move has two levels."""
    created = before.homes.group_by("topic_id").agg(at=pl.col("at").min().dt.epoch("ms"))
    both = _of_both(ends, created.with_columns(name=pl.lit("time")))
    apart = (pl.col("at") - pl.col("at_b")).abs()
    return _bounds(both, _level(apart - 1, _TIME_EDGES), _level(apart + 1, _TIME_EDGES), pl.lit(True))


def _rarity(compared: pl.DataFrame) -> pl.DataFrame:
    """The bounds of the rarity of what titles share, which is compared where they are alike."""
    near = compared.filter((pl.col("name") == "title") & (pl.col("value") >= _NEAR))
    return _bounds(near.with_columns(name=pl.lit("rarity")), pl.lit(0), pl.lit(_RAREST), pl.lit(True))
