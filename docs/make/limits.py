"""The limits of an observation, read from the table that validation uses."""

from __future__ import annotations

from docs.make.markdown import code, table
from memstate_core.ingest.validation.limits import LIMITS
from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS
from memstate_core.model.observation import Observation
from memstate_core.model.parts import EdgeTo, FieldValue


def limits() -> str:
    """The longest string, value or list that each part of an observation may hold; equal limits share a row."""
    by_limit: dict[tuple[int, str], list[str]] = {}
    for path, limit in LIMITS.items():
        by_limit.setdefault((limit, _unit(path)), []).append(code(path))
    for form in FORMS:
        for name, limit in form.LIMITS.items():
            by_limit.setdefault((limit, _unit_of(form, name)), []).append(f"{code(f'memory.{name}')} of {form.form()}")
    rows = [(", ".join(paths), f"{limit:,} {unit}") for (limit, unit), paths in sorted(by_limit.items())]
    return table(("Part of an observation", "At most"), rows)


def _unit_of(form: type[Form], name: str) -> str:
    return "elements" if "list[" in str(form.__annotations__.get(name, "")) else "characters"


def _unit(path: str) -> str:
    owner, _, name = path.rpartition("[].")
    kind = {"fields": FieldValue, "edges": EdgeTo}.get(owner, Observation)
    if name in ("value", "details.arguments"):
        return "characters of JSON"
    return "elements" if "list[" in str(kind.__annotations__.get(name, "")) else "characters"
