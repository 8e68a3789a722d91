"""Sets keys of `memstate.toml`; comments, order and all other keys stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def with_keys(path: Path, section: str, keys: Mapping[str, str | int | None]) -> bytes:
    """The content of a settings file after a change.

    Args:
        path: the file, which need not exist; its content is valid TOML.
        section: the section.
        keys: values by key; None removes a key.
    """
    import tomlkit

    document = tomlkit.parse(path.read_text(encoding="utf-8-sig")) if path.exists() else tomlkit.document()
    table = document.setdefault(section, tomlkit.table())
    for key, value in keys.items():
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return tomlkit.dumps(document).encode()
