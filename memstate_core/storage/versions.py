"""Versions of objects, on which conditional puts depend: ETags, but generations in Google Cloud Storage.

Object stores identify a version by its ETag, by a number, or by both; of each service the one is kept that it accepts
as the condition of a put.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore


def version_of(store: ObjectStore, meta: Mapping[str, Any]) -> str:
    """The version of an object, from what a request for it or a put answered."""
    return str(meta[_key(store)])


def on_condition(store: ObjectStore, version: str | None) -> PutMode:
    """The mode of a put that succeeds while an object has this version; for None, while there is no object."""
    if version is None:
        return "create"
    return {"version": version} if _key(store) == "version" else {"e_tag": version}


def _key(store: ObjectStore) -> str:
    from obstore.store import GCSStore

    return "version" if isinstance(store, GCSStore) else "e_tag"
