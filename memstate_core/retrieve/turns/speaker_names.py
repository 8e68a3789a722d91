"""Names of the speakers of a scope: those that the turns carry, and those by which others address them.

People are called by names that no turn carries as its actor: nicknames, or first names behind an account. In a session
of two, a capitalised word near the start of a turn that stands before a mark ("Hey Kate, ...", "Good morning Kate!")
mostly addresses the other one. A word that does so often, in several sessions, and never the other way, is a name.
Languages without capitals have no such names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from memstate_core.model.terms import words

_LEAST_TURNS, _LEAST_SESSIONS = 3, 2
"""How often a word addresses a speaker before it counts as a name of theirs."""

_OWN_SHARE = 0.2
"""The most that a speaker uses a name of their own to address others, as a share of the uses for them."""

_LEAST_SHARE = 0.25
"""The least uses of a name, as a share of the uses of the speaker's most frequent one."""

_LETTER = r"[\p{L}\p{N}'\u{2019}]"
_GAP = r"[^\p{L}\p{N}'\u{2019}.!?]"
_ADDRESS = rf"^[^\p{{L}}\p{{N}}]*(?:{_LETTER}+{_GAP}+){{1,3}}?(\p{{Lu}}[\p{{L}}\p{{N}}]+)\s*(?:[,!?.]|$)"
"""The first capitalised word before a mark among the second to the fourth word of a turn."""

_FEWEST_WORDS = 3
"""The fewest words of a question without its names; with fewer left it keeps them."""


@dataclass(frozen=True)
class SpeakerNames:
    """The names of the speakers of one scope.

    Attributes:
        actors: the words of each actor, in the order of the actors' names.
        aliases: the other names of actors, by their place in that order.
    """

    actors: list[list[str]]
    aliases: dict[str, int]

    @classmethod
    def of(cls, evidence: pl.DataFrame) -> SpeakerNames:
        """The names in evidence (columns EVIDENCE_INDEX) of one scope."""
        actors = evidence["actor"].fill_null("").unique().sort().to_frame("actor").with_row_index("speaker")
        aliases = address_names(evidence).join(actors, on="actor")
        return cls(
            actors.select(words(pl.col("actor"))).to_series().to_list(),
            dict(zip(aliases["word"], aliases["speaker"], strict=True)),
        )

    @cached_property
    def _holders(self) -> dict[str, list[tuple[int, float]]]:
        """For each word the speakers whose names have it, with its share of the name."""
        found: dict[str, list[tuple[int, float]]] = {}
        for speaker, name in enumerate(self.actors):
            for word in name:
                found.setdefault(word, []).append((speaker, 1 / len(name)))
        return found

    def named(self, asked: Iterable[str]) -> npt.NDArray[np.float64]:
        """The share of the words of each speaker's name among distinct words, 1 if one of their other names is."""
        shares = np.zeros(len(self.actors))
        for word in asked:
            for speaker, share in self._holders.get(word, []):
                shares[speaker] += share
            if word in self.aliases:
                shares[self.aliases[word]] = 1.0
        return np.minimum(shares, 1.0)

    def in_question(self, asked: Iterable[str]) -> set[str]:
        """The words of names in a question: other names, and all words of names whose first word it has."""
        among = set(asked)
        begun = {
            speaker for word in among for speaker, _ in self._holders.get(word, []) if self.actors[speaker][0] == word
        }
        return {word for speaker in begun for word in self.actors[speaker]} & among | among & self.aliases.keys()


def address_names(evidence: pl.DataFrame) -> pl.DataFrame:
    """The words by which speakers are addressed in sessions of two (columns actor and word, lower case).

    Args:
        evidence: the evidence of one scope, columns `actor`, `session_id` and `text`.
    """
    said = evidence.select("session_id", "text", by="actor").drop_nulls()
    pairs = said.group_by("session_id").agg(both=pl.col("by").unique().sort()).filter(pl.col("both").list.len() == 2)
    first, last = pl.col("both").list.first(), pl.col("both").list.last()
    spoken = said.join(pairs, on="session_id").select(
        "session_id", "by", to=pl.when(first == pl.col("by")).then(last).otherwise(first),
        word=pl.col("text").str.extract(_ADDRESS).str.to_lowercase(),
    ).drop_nulls("word")  # fmt: skip
    found = spoken.group_by("word", actor="to").agg(turns=pl.len(), sessions=pl.col("session_id").n_unique())
    found = found.join(spoken.group_by("word", actor="by").agg(own=pl.len()), on=["word", "actor"], how="left")
    often = found.filter(
        pl.col("turns") >= _LEAST_TURNS,
        pl.col("sessions") >= _LEAST_SESSIONS,
        pl.col("own").fill_null(0) <= _OWN_SHARE * pl.col("turns"),
        pl.col("turns") >= _LEAST_SHARE * pl.col("turns").max().over("actor"),
    )
    return often.filter(pl.len().over("word") == 1).select("actor", "word").sort("actor", "word")


def without_names(text: str, names: Iterable[str]) -> str:
    """A question without these words and their possessive endings; as it is if fewer than three words would be left."""
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    if not either:
        return text
    rest = re.sub(rf"(?<!\w)(?:{either})(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    return " ".join(rest.split()) if len(re.findall(r"\w+", rest)) >= _FEWEST_WORDS else text
