"""Loads TOML files with settings, and turns validation errors into errors with line and column."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from memstate_core.model.errors import SettingsError
from memstate_core.policy.lexer import ConditionError
from memstate_core.policy.toml_positions import Steps, inside, line_and_column, nearest, positions

Values = dict[str, dict[str, Any]]
_CREDENTIALS, _OPTIONS = re.compile(r"://[^/?#]*@"), re.compile(r"\?.*", re.DOTALL)
_BOUNDS = {"gt": "above", "ge": "from", "lt": "below", "le": "up to"}
HIDDEN = "…"
"""Replaces a value in an error that may be a secret."""


class Section(BaseModel):
    """A table of a file: immutable; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


@dataclass(frozen=True)
class TomlFile:
    """A parsed file; one that does not exist has no text and no values."""

    path: Path
    text: str = ""
    values: Values = field(default_factory=dict)


RECORDED = {"recorded": True}
"""The validation context of what a ledger or manifest recorded: what earlier versions accepted stays readable."""


def is_recorded(info: ValidationInfo) -> bool:
    """Whether what is validated was recorded, and not just written by a person."""
    return info.context == RECORDED


def refusal(problem: str, *at: str | int, near: str | None = None) -> PydanticCustomError:
    """An error for a validator to raise: the problem, and the path of the key relative to the model.

    `near` is a key of the model that the position in the file shall be that of, where several are concerned.
    """
    return PydanticCustomError("refused", "{problem}", {"problem": problem, "at": at, "near": near})


def form(expected: str) -> WrapValidator:
    """Names the expected form of a text that does not match its pattern, in place of the pattern."""

    def checked(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError as error:
            if error.errors()[0]["type"] == "string_pattern_mismatch":
                raise ValueError(f"expected {expected}") from None
            raise

    return WrapValidator(checked)


def read_toml(path: Path, sections: Collection[str]) -> TomlFile:
    """Reads a file that has only sections at its top level.

    Raises:
        SettingsError: it cannot be read, is no TOML, or has something other than sections at its top level.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(str(path), "the file", "…", f"expected a file to read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(str(path), "the file", "…", f"expected TOML: {error}") from None
    file = TomlFile(path, text, values)
    for section, content in values.items():
        if not isinstance(content, dict):
            known = ", ".join(f"[{name}]" for name in sections)
            where = _where(file, (section,))
            raise SettingsError(str(path), section, content, f"expected a section of {known}", *where)
    return file


def literal(text: str) -> Any:
    """The TOML value that a variable's text denotes, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def as_tuple(value: object) -> object:
    """An array as the tuple that a strict model requires."""
    if not isinstance(value, list | tuple):
        raise ValueError("expected an array, or for tables a header in double brackets")
    return tuple(value)


ARRAY = BeforeValidator(as_tuple)
"""Lets a tuple be written as a TOML array."""


def explained(
    error: ValidationError,
    kind: type[BaseModel],
    values: Values,
    file: TomlFile,
    variables: Mapping[tuple[str, str], str],
) -> SettingsError:
    """The first error of a validation, with its source, its key and, for a file, line and column.

    Args:
        error: pydantic's error.
        kind: the model.
        values: the values that were validated.
        file: the file that they come from.
        variables: the environment variables that override it, by section and key.
    """
    first = error.errors()[0]
    steps: Steps = (*first["loc"], *first.get("ctx", {}).get("at", ()))
    sources = [name for key, name in variables.items() if key == steps[:2] or key[:1] == steps]
    near = first.get("ctx", {}).get("near")
    where = () if sources else _where(file, steps if near is None else (*steps, near), first)
    source = ", ".join(f"environment variable {name}" for name in sources) or str(file.path)
    value = HIDDEN if _may_be_secret(steps) else without_secrets(_value(values, steps))
    return SettingsError(source, _spelt(steps), value, _allowed(first, kind, bool(where)), *where)


def without_secrets(value: Any) -> Any:
    """A value as errors may show it: URLs without their credentials and options, also inside of tables and arrays."""
    if isinstance(value, str) and "://" in value:
        return _OPTIONS.sub(rf"?{HIDDEN}", _CREDENTIALS.sub(rf"://{HIDDEN}@", value))
    if isinstance(value, Mapping):
        return {name: without_secrets(part) for name, part in value.items()}
    return [without_secrets(part) for part in value] if isinstance(value, list) else value


def _may_be_secret(steps: Steps) -> bool:
    """Whether the value may contain a secret: one in place of a variable's name, a URL, or a table with such a key."""
    if steps == ("notify",):
        return True
    names = [str(step).lower() for step in steps[1:] if steps[0] in ("extractor", "notify")]
    return any(word in name for name in names for word in ("key", "secret", "password", "_url"))


def _where(file: TomlFile, steps: Steps, error: ErrorDetails | None = None) -> tuple[int, int] | tuple[()]:
    """Line and column of a value, or of the character in it at which a condition cannot be parsed."""
    found = positions(file.text)
    offset = nearest(found, steps)
    if offset is None:
        return ()
    problem = _condition_error(error)
    if problem and steps in found:
        offset = inside(file.text, offset, problem.column - 1)
    return line_and_column(file.text, offset)


def _condition_error(error: ErrorDetails | None) -> ConditionError | None:
    cause = error.get("ctx", {}).get("error") if error else None
    return cause if isinstance(cause, ConditionError) else None


def _allowed(error: ErrorDetails, kind: type[BaseModel], located: bool) -> str:
    problem = _condition_error(error)
    if problem:
        return problem.problem if located else str(problem)
    if error["type"] == "extra_forbidden":
        return f"unknown key; known here: {', '.join(_model(kind, error['loc'][:-1]).model_fields)}"
    if isinstance(found := error.get("input"), float) and not math.isfinite(found):
        bounds = [f" {_BOUNDS[name]} {bound:g}" for name, bound in error.get("ctx", {}).items() if name in _BOUNDS]
        return f"expected a finite number{''.join(bounds)}"
    return error["msg"].removeprefix("Value error, ")


def _model(kind: type[BaseModel], steps: Steps) -> type[BaseModel]:
    """The model at a path: of a section, or of an element of an array of tables."""
    for step in steps:
        if isinstance(step, str):
            annotation = kind.model_fields[step].annotation
            kind = next(one for one in (annotation, *get_args(annotation)) if _is_model(one))
    return kind


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _value(values: Any, steps: Steps) -> Any:
    for step in steps:
        if isinstance(step, int):
            values = values[step] if isinstance(values, list) and step < len(values) else None
        else:
            values = values.get(step) if isinstance(values, dict) else values
    return values


def _spelt(steps: Steps) -> str:
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return dotted.removeprefix(".") or "the policies together"
