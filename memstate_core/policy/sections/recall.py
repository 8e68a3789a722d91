"""The section `[recall]` of `memstate.toml`: which questions each night is asked before it is published."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from memstate_core.model.scope import parse_scope
from memstate_core.policy.loading import ARRAY, Section


class RecallSettings(Section):
    """Questions that each night is asked before it is published (the gate `recall`), and the recording of such."""

    questions: str = ""
    """File of questions with what they should find, as `memstate eval` reads it; a path relative to the home. Empty:
    none."""
    record: bool = False
    """Whether questions that are answered and recorded as accesses are kept for the gate, with the ids of the best of
    what was found. They are kept in the folder `recall` of the home and nowhere else; any erasure removes them."""
    record_scopes: Annotated[tuple[str, ...], ARRAY] = ()
    """Scopes, `TYPE:ID`, whose questions may be recorded; a question about others as well is not. Empty: all."""
    sample: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Share of the questions that is recorded, by their text: one that is in the sample stays in it."""
    keep_days: Annotated[int, Field(ge=1, le=36_500)] = 30
    """Days that a recorded question is asked and kept."""
    max_questions: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Number of recorded questions that a night is asked at most: the latest of each scope, in turn."""

    @field_validator("record_scopes")
    @classmethod
    def _scopes(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(parse_scope, scopes))
