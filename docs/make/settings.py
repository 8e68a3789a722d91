"""The reference of the settings, read from their models: defaults, bounds, variables, and their docstrings."""

from __future__ import annotations

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs.make.markdown import code, one_line, paragraphs, table
from docs.make.schemas import kind_of, summary
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import LEGACY_VARIABLES, Override
from memstate_core.policy.template import keys, literal, sections


def settings() -> str:
    """One section for each table of `memstate.toml`, with every key."""
    return paragraphs(
        *(_section(f"[{name}]", model, f"Variables: `MEMSTATE_{name.upper()}_<KEY>`.") for name, model in sections()),
        _section("Override", Override, "A table `[[policy.overrides]]`."),
        _section("Rule", Rule, "A table `[[policy.rules]]`."),
    )


def default_file() -> str:
    """A `memstate.toml` that says what holds without one."""
    parts = [_toml(name, model) for name, model in sections()]
    return '```toml title="memstate.toml"\n' + "\n\n".join(parts) + "\n```"


def variables() -> str:
    """The variables whose names differ from the rule `MEMSTATE_<SECTION>_<KEY>`."""
    rows = [(code(name), code(f"{section}.{key}")) for name, (section, key) in sorted(LEGACY_VARIABLES.items())]
    return table(("Variable", "Sets"), rows)


def _section(heading: str, model: type[BaseModel], written: str) -> str:
    shapes = model.model_json_schema()["properties"]
    rows = [
        (code(key), kind_of(shapes[key]), _default(field), one_line(field.description))
        for key, field in model.model_fields.items()
    ]
    header = ("Key", "Type", "Default", "Meaning")
    return paragraphs(f"### {heading}", summary(model.__doc__), written, table(header, rows))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return "" if field.default is None else code(literal(field.default))


def _toml(name: str, model: type[BaseModel]) -> str:
    return "\n".join([f"[{name}]", *(f"{key.name} = {key.default}" for key in keys(model))])
