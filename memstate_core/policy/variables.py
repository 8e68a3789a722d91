"""The environment variables that set keys of `memstate.toml`, and those that look like one and set none."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel

from memstate_core.model.errors import SettingsError
from memstate_core.policy.loading import HIDDEN
from memstate_core.policy.sections.extractor import EXTRACTOR_VARIABLES

Where = tuple[str, str]
"""A section and a key."""

LEGACY_VARIABLES: dict[str, Where] = {
    **{variable: ("extractor", key) for variable, key in EXTRACTOR_VARIABLES.items()},
    "MEMSTATE_FIELD_SALIENCE_MAX": ("policy", "field_salience_max"),
    "MEMSTATE_QUERY_FIELD_SALIENCE_BUMP": ("policy", "query_salience_bump"),
}
"""Variables that keep the names they have in MemState, with the section and key that each sets."""

_OF_SERVICES = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
"""What Kubernetes sets for each service of a namespace, one called `memstate-ui` among them."""


def setting_variables(settings: type[BaseModel]) -> dict[str, Where]:
    """Every variable that sets a key, with the section and key."""
    named = {
        f"MEMSTATE_{section}_{key}".upper(): (section, key)
        for section, field in settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        for key in field.annotation.model_fields
    }
    return named | LEGACY_VARIABLES


def require_known(environ: Mapping[str, str], known: Mapping[str, Where], settings: BaseModel) -> None:
    """Refuses variables that begin like those of a section and set none of its keys.

    Args:
        environ: the environment.
        known: every variable that sets a key.
        settings: the settings; variables that they name as holding a secret are allowed.

    Raises:
        SettingsError: names the first such variable, and the nearest that sets a key.
    """
    allowed = {*known, *_holding_secrets(settings)}
    for variable in sorted(environ.keys() - allowed):
        section = next((name for name in type(settings).model_fields if variable.startswith(_prefix(name))), None)
        if section is not None and not _OF_SERVICES.fullmatch(variable):
            key = variable.removeprefix(_prefix(section)).lower()
            expected = _expected(variable, [name for name, where in known.items() if where[0] == section])
            raise SettingsError(f"environment variable {variable}", f"{section}.{key}", HIDDEN, expected)


def _prefix(section: str) -> str:
    return f"MEMSTATE_{section}_".upper()


def _expected(variable: str, known: Collection[str]) -> str:
    near = get_close_matches(variable, known, 1)
    meant = f"; did you mean {near[0]}?" if near else ";"
    return f"no setting has this name{meant} Known here: {', '.join(known)}. Correct the name, or unset the variable"


def _holding_secrets(settings: BaseModel) -> Iterator[str]:
    for _, section in settings:
        yield from (str(value) for key, value in section if key.endswith("_env") and value)
