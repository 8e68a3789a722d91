"""The settings file that says what holds without one: every key with its default, and with its meaning as a comment."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel

from memstate_core.policy.settings import Settings

_WIDTH = 100


class Key(NamedTuple):
    """A key of a settings file: its name, its default as TOML writes it, and its docstring."""

    name: str
    default: str
    meaning: str


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """The tables of the settings file with their models."""
    for name, field in Settings.model_fields.items():
        assert isinstance(field.annotation, type)
        yield name, field.annotation


def keys(model: type[BaseModel]) -> Iterator[Key]:
    """The keys of a table that have a default."""
    for name, field in model.model_fields.items():
        if not field.is_required():
            yield Key(name, literal(field.default), " ".join((field.description or "").split()))


def literal(value: Any) -> str:
    """A default as TOML writes it; of the types that settings have, JSON writes the same."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def settings_template() -> str:
    """A file in which every key is commented out, so that it changes nothing until it is edited."""
    head = "# Settings of this store. Each key stands here with its default; remove the # to change it.\n"
    return "\n".join([head, *("\n".join(_section(name, model)) for name, model in sections())])


def _section(name: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"[{name}]"
    for key in keys(model):
        yield from textwrap.wrap(key.meaning, _WIDTH, initial_indent="# ", subsequent_indent="# ")
        yield f"# {key.name} = {key.default}"
    yield ""
