"""The topics of a shard as input of the comparisons: texts, vectors, fields, sources, keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from memstate_core.model.text import normalised
from memstate_core.revise.matching.arrays import Floats, Ints, codes_of, pair_products, tfidf
from memstate_core.revise.matching.texts.codes import TitleCodes
from memstate_core.revise.matching.texts.field_texts import FieldTexts
from memstate_core.revise.matching.texts.marks import Marks, marks_of
from memstate_core.revise.matching.texts.summary_texts import SummaryTexts
from memstate_core.revise.matching.texts.tokens import letter_groups, units, words
from memstate_core.revise.matching.texts.typed_dates import day
from memstate_core.revise.matching.texts.typed_values import DECIMALS, MEASURED, least_size, number
from memstate_core.revise.matching.texts.unit_differences import UnitDifferences
from memstate_core.revise.matching.texts.unit_overlap import UnitIndex, unit_rarity

NONE = -1
"""Code of a missing kind, source or key."""
_NOT_STATED = (
    "?", "-", "--", "n/a", "n.a.", "null", "undefined", "unknown", "unspecified", "not available", "not known",
    "not specified", "tba", "tbd", "unbekannt", "k. a.", "k.a.", "inconnu", "desconocido", "desconhecido",
    "sconosciuto", "onbekend",
)  # fmt: skip
"""What programs and people write in place of a value; in lower case."""
OFTEN = 5
"""Topics that have a value, from which on a source that has it alone uses a word of its own."""
_MIN_REMAINDER = 3
"""Words that a summary must add to title and fields before it is compared."""


@dataclass(frozen=True)
class Corpus:
    """Active topics, one row each, in the order of (scope, id).

    Attributes:
        topics: columns id, scope, title, summary, topic_kind, created_at.
        fields: current values, sorted by row: columns row, name, text, number and day (null where it is neither).
        vectors: embeddings of unit length, float32 (topics, dimensions); zeros where there is none.
        sources: columns row, source: distinct, of those topics all of whose evidence names a source; sorted by row.
        keys: columns row, key: keys that observations gave; sorted by row.
    """

    topics: pl.DataFrame
    fields: pl.DataFrame
    vectors: NDArray[np.float32]
    sources: pl.DataFrame
    keys: pl.DataFrame

    def __len__(self) -> int:
        return self.topics.height

    def of(self, scope: str) -> Corpus:
        """The topics of one scope."""
        low, high = (int(self.topics["scope"].search_sorted(scope, side)) for side in ("left", "right"))
        parts = (_slice(frame, low, high) for frame in (self.fields, self.sources, self.keys))
        fields, sources, keys = parts
        return Corpus(self.topics[low:high], fields, self.vectors[low:high], sources, keys)

    @cached_property
    def titles(self) -> list[str]:
        """The titles; empty where there is none."""
        return self.topics["title"].fill_null("").to_list()

    @cached_property
    def scope(self) -> Ints:
        """A code of each topic's scope."""
        return self.topics["scope"].rank("dense").to_numpy().astype(np.int64)

    @cached_property
    def kind(self) -> Ints:
        """A code of each topic's kind, NONE where it has none."""
        kinds = self.topics.select(normalised(pl.col("topic_kind"))).to_series()
        return (kinds.rank("dense").cast(pl.Int64).fill_null(NONE)).to_numpy()

    @cached_property
    def several_sources(self) -> bool:
        """Whether topics come from more than one source."""
        return self.sources["source"].n_unique() > 1

    @cached_property
    def peers(self) -> NDArray[np.float64]:
        """How many topics each topic's scope holds."""
        return self.topics.select(pl.len().over("scope")).to_series().to_numpy().astype(np.float64)

    @cached_property
    def created(self) -> NDArray[np.float64]:
        """When each topic was created, in days since 1970; NaN where unknown."""
        return (self.topics["created_at"].dt.epoch("ms") / 86_400_000).to_numpy().astype(np.float64)

    @cached_property
    def title_code(self) -> Ints:
        """Equal for titles of the same words in the same order."""
        return codes_of([" ".join(words(title)) for title in self.titles])

    @cached_property
    def title_groups(self) -> Any:
        """Titles as letter groups, TF-IDF, CSR (topics, groups)."""
        return tfidf(self.titles, letter_groups)

    @cached_property
    def title_units(self) -> UnitIndex:
        """Titles as units weighted by rarity."""
        return UnitIndex(self.titles)

    @property
    def all_words(self) -> Any:
        """Title, summary and field values together as words, TF-IDF, CSR (topics, words); not kept, being read once."""
        values = self._joined_values
        return tfidf([" ".join(part) for part in zip(self.titles, self.summaries, values, strict=True)], words)

    @cached_property
    def remainder(self) -> tuple[Any, NDArray[np.bool_]]:
        """Words of summaries that are in neither title nor fields (CSR), and which topics have enough to compare."""
        topics = zip(self.titles, self._joined_values, self.summaries, strict=True)
        added = [_added(f"{title} {value}", summary) for title, value, summary in topics]
        enough = np.array([text.count(" ") + 1 >= _MIN_REMAINDER for text in added], dtype=bool)
        return tfidf(added, words), enough

    @cached_property
    def title_differences(self) -> UnitDifferences:
        """Titles as units, ready to find what each of two lacks."""
        return UnitDifferences(self.title_units, self.titles)

    @cached_property
    def title_codes(self) -> TitleCodes:
        """The codes of titles."""
        return TitleCodes(self.titles)

    @cached_property
    def summaries(self) -> list[str]:
        """The summaries; empty where there is none."""
        return self.topics["summary"].fill_null("").to_list()

    @cached_property
    def summary_units(self) -> list[list[str]]:
        """The units of each summary."""
        return [units(text) for text in self.summaries]

    @cached_property
    def title_marks(self) -> Marks:
        """The marks of the titles."""
        return marks_of(self.titles)

    @cached_property
    def summary_texts(self) -> SummaryTexts:
        """The summaries, ready to compare pairs of them."""
        return SummaryTexts(self.summaries, self.summary_units)

    @cached_property
    def field_texts(self) -> FieldTexts:
        """The values of fields, ready to compare pairs of them."""
        return FieldTexts(self.fields["text"])

    @cached_property
    def own_words(self) -> NDArray[np.bool_]:
        """Which field values one source has alone, for OFTEN topics or more (rows of `fields`)."""
        held = self._values_of_names.with_row_index("at").join(self.sources.cast({"row": pl.Int64}), on="row")
        alone, often = pl.col("source").n_unique() == 1, pl.col("row").n_unique() >= OFTEN
        found = np.zeros(self.fields.height, bool)
        found[held.filter((alone & often).over("name", "value"))["at"].to_numpy()] = True
        return found

    @cached_property
    def value_rarity(self) -> Floats:
        """The rarity of each field value in nats; 0 where the title has all of its units (rows of `fields`)."""
        holders = self._values_of_names.select(pl.len().over("name", "value")).to_series().to_numpy()
        units, size = self.value_units
        row = self.fields["row"].to_numpy().astype(np.int64)
        titled = pair_products(units, self.title_units.own, np.arange(len(row)), row) >= size
        return np.where(titled, 0.0, np.log(len(self) / holders)).astype(np.float32)

    @cached_property
    def measured(self) -> NDArray[np.bool_]:
        """Which field values are numbers whose last digits vary (rows of `fields`)."""
        decimals = pl.col("text").str.extract(DECIMALS).str.len_chars().fill_null(0)
        measured = pl.col("number").is_not_null() & (decimals >= MEASURED)
        return self.fields.select(measured).to_series().to_numpy()

    @cached_property
    def least_sizes(self) -> pl.Series:
        """What distances of numbers are relative to at least (rows of `fields`); 0 where zero is the end of a scale."""
        return self.fields.select(least_size=least_size(pl.col("number")).over("name")).to_series()

    @property
    def _values_of_names(self) -> pl.DataFrame:
        """The values of fields (columns row, name, value: equal where nothing but spaces and signs differs)."""
        texts = self.field_texts
        return self.fields.select(pl.col("row").cast(pl.Int64), "name", value=pl.Series(texts.squeezed[texts.code]))

    @cached_property
    def titles_of_summary(self) -> Ints:
        """How many different titles the topics have that share the summary of each (topics,)."""
        frame = pl.DataFrame({"summary": [" ".join(row) for row in self.summary_units], "title": self.title_code})
        return frame.select(pl.col("title").n_unique().over("summary")).to_series().to_numpy().astype(np.int64)

    @cached_property
    def summarised(self) -> NDArray[np.bool_]:
        """Which topics have a summary that says something besides the title."""
        both = zip(self.title_units.cut, self.summary_units, strict=True)
        return np.array([not set(known).issuperset(added) for known, added in both], bool)

    @cached_property
    def beside_title(self) -> tuple[Any, NDArray[np.float32]]:
        """Units of summary and field values (CSR of ones, (topics, units)), and the rarity of each in nats (units,)."""
        return unit_rarity(self._units_beside)

    @cached_property
    def value_units(self) -> tuple[Any, NDArray[np.float32]]:
        """Field values as units of titles (CSR of ones, (rows of `fields`, units)), and how many units each has."""
        return self.title_units.known(self.units_of_values)

    @cached_property
    def units_of_values(self) -> list[list[str]]:
        """The units of each field value (rows of `fields`)."""
        return [units(text) for text in self.fields["text"]]

    @cached_property
    def single_values(self) -> Any:
        """Units of titles that are the whole value of a field of a topic, CSR of ones (topics, units)."""
        units, size = self.value_units
        single = np.flatnonzero(size == 1)
        entries = np.ones(len(single), np.float32), (self.fields["row"].to_numpy()[single], single)
        return (csr_matrix(entries, shape=(len(self), len(size))) @ units).sign().tocsr()

    @cached_property
    def beside_in_titles(self) -> Any:
        """Units of titles that a topic has in its summary or fields, CSR of ones (topics, units)."""
        return self.title_units.known(self._units_beside)[0]

    @cached_property
    def values(self) -> Any:
        """Field values as letter groups, TF-IDF, CSR (rows of `fields`, groups)."""
        return tfidf(self.fields["text"].to_list(), letter_groups)

    def value_pairs(self, a: Ints, b: Ints) -> pl.DataFrame:
        """Values of the same field of both topics of pairs.

        Args:
            a: positions of topics (pairs,).
            b: positions of the others (pairs,).

        Returns:
            Columns pair, name, value (the row of `fields`), text, number, day, the last four again with `_b`, and
            letters: the cosine of the texts' letter groups.
        """
        values = self.fields.with_row_index("value").with_columns(pl.col("value", "row").cast(pl.Int64))
        ends = pl.DataFrame({"a": a, "b": b}).with_row_index("pair").with_columns(pl.col("pair").cast(pl.Int64))
        one = ends.join(values.rename({"row": "a"}), on="a")
        both = one.join(values.rename({"row": "b"}), on=["b", "name"], suffix="_b")
        letters = pair_products(self.values, self.values, both["value"].to_numpy(), both["value_b"].to_numpy())
        return both.with_columns(letters=pl.Series(letters, dtype=pl.Float64)).drop("a", "b")

    @cached_property
    def _units_beside(self) -> list[list[str]]:
        """The units of summary and field values together."""
        both = zip(self.summaries, self._joined_values, strict=True)
        return [units(f"{summary} {values}") for summary, values in both]

    @cached_property
    def _joined_values(self) -> list[str]:
        joined = self.fields.group_by("row").agg(pl.col("text").str.join(" "))
        rows = pl.DataFrame({"row": np.arange(len(self))}).join(joined, on="row", how="left", maintain_order="left")
        return rows["text"].fill_null("").to_list()


def _added(known: str, summary: str) -> str:
    """The words of a summary that a text does not have, with a space between them."""
    own = set(words(known))
    return " ".join(word for word in words(summary) if word not in own)


def _slice(frame: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
    """What belongs to the rows from `low` up to `high` of a frame sorted by row, with rows counted from `low`."""
    first, last = (int(frame["row"].search_sorted(row, "left")) for row in (low, high))
    return frame[first:last].with_columns(pl.col("row") - low)


def field_values(current: pl.DataFrame) -> pl.DataFrame:
    """Current revisions as comparable values, but what says that there is none (`unknown`, `N/A`).

    Args:
        current: columns row, name, value_json, field_type; no null values.

    Returns:
        Columns row, name, text (strings without quotes), number (null unless the text is one finite number, a
        duration, or a number with a unit or currency), day (days since 1970, null unless the text is a date); sorted.
    """
    raw = pl.col("value_json")
    is_text = raw.str.starts_with('"')
    decoded = pl.when(is_text).then(raw).otherwise(pl.lit('""')).str.json_decode(pl.String)
    every = current.with_columns(text=pl.when(is_text).then(decoded).otherwise(raw))
    plain = every.filter(~pl.col("text").str.strip_chars().str.to_lowercase().is_in(_NOT_STATED))
    return plain.select("row", "name", "text", number=number(pl.col("text")), day=day(pl.col("text"))).sort(
        "row", "name"
    )
