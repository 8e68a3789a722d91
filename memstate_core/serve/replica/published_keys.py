"""The API keys of the store, which a replica accepts beside those of its own home: their hashes alone are published."""

from __future__ import annotations

from pathlib import Path

from memstate_core.model.errors import KeysDamaged
from memstate_core.serve.auth import key_file
from memstate_core.state.files import make_folder, replace_file
from memstate_core.storage.published import KEYS
from memstate_core.storage.purpose import SOURCE
from memstate_core.storage.storage import storage


def follow_keys(source: str, path: Path) -> None:
    """Keeps the keys at a source as they are there now; what was read before stays where that fails.

    Where keys were published once and are no longer, none of them is accepted any more.

    Args:
        source: the address.
        path: the file that keeps them.

    Raises:
        SourceUnreachable: the source does not answer.
        PublicationRefused: they are not as they were written.
        CloudUnavailable: the package for object storage is missing.
    """
    place = storage(source, SOURCE)
    found = place.read(KEYS)
    if found is None and not path.exists():
        return
    try:
        content = key_file.encoded([] if found is None else key_file.decoded(found[0], place.where))
    except KeysDamaged as error:
        raise SOURCE.refused(place.where, f"{KEYS}: {error.message}") from None
    if not path.exists() or path.read_bytes() != content:
        make_folder(path.parent)
        replace_file(path, content)
