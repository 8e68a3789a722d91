"""Publishes the hashes of a store's API keys, so that its replicas accept the same keys.

A key has 256 random bits, so its SHA-256 grants nothing to those who read the URL; names, scopes and roles of keys lie
there readable. Invariant: a home without a key file changes nothing there.
"""

from __future__ import annotations

from memstate_core.model.errors import PublicationConflict
from memstate_core.run.store import Store
from memstate_core.serve.auth import key_file
from memstate_core.storage.published import KEYS
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import Conflict, storage

_ATTEMPTS = 5


def publish_keys(store: Store, where: str) -> bool:
    """Replaces the keys at a URL with those of the home; whether anything changed.

    Raises:
        KeysDamaged: the key file cannot be read.
        PublicationUnreachable: the storage does not answer, or refuses.
        PublicationConflict: other processes kept changing the keys there.
        PublicationRefused: the address is none.
        CloudUnavailable: the package for object storage is missing.
    """
    place = storage(where, PUBLICATION)
    for _ in range(_ATTEMPTS):
        keys = key_file.read(store.home.keys)
        if keys is None:
            return False
        content, found = key_file.encoded(keys), place.read(KEYS)
        if found is not None and found[0] == content:
            return False
        try:
            place.replace(KEYS, content, None if found is None else found[1])
        except Conflict:
            continue
        return True
    raise PublicationConflict(place.where, f"{KEYS} was changed by another publisher since it was read")
