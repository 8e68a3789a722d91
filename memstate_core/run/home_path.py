"""Where the home of a command is: a folder, or on each machine the checkout of a store that a URL names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from memstate_core.model.errors import HomeUnknown, StoreUrlRefused
from memstate_core.policy.sections.store import STORE_URL
from memstate_core.policy.settings import FILE_NAME
from memstate_core.policy.toml_edit import with_keys
from memstate_core.state.files import make_folder, replace_file

HOME_VARIABLE = "MEMSTATE_HOME"
DEFAULT_HOME = "~/.memstate"
_URL_VARIABLE = "MEMSTATE_STORE_URL"
_DATA_VARIABLE, _DATA = "XDG_DATA_HOME", "~/.local/share"
"""Where programs keep the data of a user, by the XDG Base Directory Specification 0.8."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").match


def named_home(given: str | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """How the home of a command is named: as given, else by $MEMSTATE_HOME, else ~/.memstate."""
    return given or environ.get(HOME_VARIABLE) or DEFAULT_HOME


def is_url(home: str) -> bool:
    """Whether a home is named by the URL of a store."""
    return _SCHEME(home) is not None


def home_path(given: str | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The home of a command, by its name.

    For a URL it is a folder of this user, whose settings name the URL; they are written where there are none yet.

    Raises:
        StoreUrlRefused: a URL is none of a store, or $MEMSTATE_STORE_URL names another one.
        HomeUnknown: a folder is below the home directory of an unknown user.
    """
    named = named_home(given, environ)
    return _checkout(named, environ) if is_url(named) else folder_path(named)


def folder_path(named: str) -> Path:
    """The folder that a path names; one that begins with `~` is below the home directory of a user.

    Raises:
        HomeUnknown: the system does not know this user.
    """
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:  # as the standard library says it
        raise HomeUnknown(named, Path(named).parts[0]) from None


def _checkout(url: str, environ: Mapping[str, str]) -> Path:
    if re.fullmatch(STORE_URL, url) is None:
        scheme = _SCHEME(url)
        raise StoreUrlRefused(
            f"{scheme[1] if scheme else ''}://…",
            "a home may be named by s3://, gs://, az:// or file://, without credentials or options",
        )
    other = environ.get(_URL_VARIABLE)
    if other not in (None, "", url):
        raise StoreUrlRefused(url, f"{_URL_VARIABLE} names {other}; set one of them")
    data = folder_path(environ.get(_DATA_VARIABLE) or _DATA)
    name = re.sub(r"[^A-Za-z0-9-]+", "-", url.partition("://")[2]).strip("-")[-40:]
    folder = data / "memstate" / f"{name}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    if not (folder / FILE_NAME).exists():
        make_folder(folder)
        replace_file(folder / FILE_NAME, with_keys(folder / FILE_NAME, "store", {"url": url}))
    return folder
