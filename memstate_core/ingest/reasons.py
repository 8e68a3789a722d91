"""Reasons for refusing a row of a dump. Every refusal has a code from here and a sentence of its own.

Invariant: a released code keeps its meaning, since operators count the codes and scripts match on them.
"""

from __future__ import annotations

from enum import StrEnum

_LONGEST_DETAIL = 600


class Reason(StrEnum):
    """The code of a refusal, as it stands in the quarantine table."""

    NOT_UTF8 = "not_utf8"
    BROKEN_JSON = "broken_json"
    NOT_A_NUMBER = "not_a_number"
    TOO_DEEP = "too_deep"
    LINE_TOO_LONG = "line_too_long"
    FIELD_TOO_LONG = "field_too_long"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_WORD = "unknown_word"
    UNKNOWN_PLACEMENT = "unknown_placement"
    MISSING_CONTENT = "missing_content"
    SCOPE_WITHOUT_ID = "scope_without_id"
    BAD_TIME = "bad_time"
    FUTURE_TIME = "future_time"
    BAD_VALUE = "bad_value"
    CONFLICTING_OBSERVATION = "conflicting_observation"
    TORN_LINE = "torn_line"
    BROKEN_MEMBER = "broken_member"
    UNSAFE_PATH = "unsafe_path"
    UNFORESEEN_ERROR = "unforeseen_error"
    SET_ASIDE = "set_aside"
    ERASED = "erased"


class Rejection(Exception):
    """A row that is refused.

    Attributes:
        reason: the code.
        detail: one sentence with what was found and what was expected. Long values are cut in the middle.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = shortened(detail)


def shortened(text: str, longest: int = _LONGEST_DETAIL) -> str:
    """A text of at most about `longest` characters: its beginning and its end."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"
