"""Examination of a store that is kept at a URL: whether it can be reached and written, and how far this home is."""

from __future__ import annotations

from memstate_core.model.errors import MemstateError
from memstate_core.night.checkout.dumps_at_url import dumps_at_url
from memstate_core.night.checkout.note import Note, read_checkout, store_url
from memstate_core.night.checkout.pull import opened_note
from memstate_core.run.store import Store
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.head import Head, read_head
from memstate_core.storage.purpose import STORE
from memstate_core.storage.shard_lease import night_holders
from memstate_core.storage.storage import storage
from memstate_pipeline.doctor.finding import Finding


def remote_store(store: Store) -> Finding:
    """Where the store is kept; of one at a URL, who writes there, and which state is here."""
    url = store_url(store)
    if not url:
        return Finding("store", True, "the store is this home (store.url is not set)")
    try:
        place = storage(url, STORE)
        found = read_head(place)
        opened_note(store, url, found)
        if found is None:
            place.require_usable(store.home)
        require_conditional_puts(place, STORE.mark)
        nights, dumps = night_holders(place), len(dumps_at_url(place))
    except MemstateError as error:
        return Finding("store", False, error.message)
    if found is None:
        nothing = f"{url} holds nothing yet; the next command that writes sends what is here"
        return Finding("store", True, nothing + _waiting(dumps))
    return Finding("store", True, _said(url, found[0], nights, read_checkout(store.home)) + _waiting(dumps))


def _waiting(dumps: int) -> str:
    return f"; dumps that wait below inbox/ for the next command that writes: {dumps:,}" if dumps else ""


def _said(url: str, head: Head, nights: list[str], note: Note | None) -> str:
    there, here = ((0 if each is None or each.state is None else each.state.number) for each in (head, note))
    writers = ([f"{head.holder} holds lease {head.fence}"] if head.holder else []) + nights
    writer = "; ".join(writers) or "nobody writes"
    detail = f"{url} has state {there:,}, this home {f'state {here:,}' if here else 'none yet'}; {writer}"
    if note is not None and note.dirty and head.checkout != note.id:
        detail += "; a command here ended without sending what it did: the next one, or `memstate pull`, discards that"
    if note is not None and note.absent:
        detail += f"; the snapshots of {', '.join(note.absent)} are there alone, `memstate pull` fetches them"
    return detail
