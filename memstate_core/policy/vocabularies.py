"""Columns of conditions that hold words of a closed vocabulary: a misspelt word would be a rule that never applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial

from memstate_core.model.scope import SCOPE_TYPES, parse_scope

TOPIC_STATES = ("active", "detached", "archived", "merged")
Vocabularies = Mapping[str, Callable[[str], str | None]]
"""For each column, what is wrong with a word that it is compared with; None if nothing is."""


def meant(word: str, known: Sequence[str]) -> str:
    """A question for the nearest known word; empty if none is near."""
    near = get_close_matches(word.lower(), known, 1)
    return f", did you mean {near[0]}?" if near else ","


def scope_problem(text: str) -> str | None:
    """What is wrong with a scope as a policy names it; None if nothing is."""
    kind, _, scope_id = text.partition(":")
    try:
        written = parse_scope(text)
    except ValueError:
        near = meant(kind, SCOPE_TYPES) if kind not in SCOPE_TYPES else ","
        hint = near.replace("?", f":{scope_id}?") if scope_id.strip() else near
        return f"found {text!r}{hint} expected TYPE:ID with a type of {', '.join(SCOPE_TYPES)}"
    return None if written == text else f"found {text!r}, expected {written!r}"


def _word_problem(known: Sequence[str], word: str) -> str | None:
    return None if word in known else f"found {word!r}{meant(word, known)} expected one of {', '.join(known)}"


VOCABULARIES: Vocabularies = {
    "scope": scope_problem,
    "scope_type": partial(_word_problem, SCOPE_TYPES),
    "state": partial(_word_problem, TOPIC_STATES),
}
"""The closed vocabularies of rules."""
