"""The keys of the forms of `memory`, read from the structs that validation uses."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from docs.make.markdown import code, table
from memstate_core.model.forms.form import Form

_NAMES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any JSON value"}


def form_keys(form: type[Form]) -> str:
    """The keys of a form with their types and meanings."""
    rows = [(code("type"), "string", form.form())]
    rows += [(code(key.name), _name(key.type), key.description) for key in form.keys()]  # noqa: SIM118, no mapping
    return table(("Key", "Type", "Meaning"), rows)


def _name(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_name(each) for each in get_args(kind) if each is not type(None))
    if get_origin(kind) is Literal:
        return ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is list:
        return f"list of {_name(*get_args(kind))}s"
    if get_origin(kind) is dict:
        return "object"
    return _NAMES[kind]
