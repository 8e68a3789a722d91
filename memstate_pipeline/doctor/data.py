"""Examinations of what a store holds: the served snapshots, the ledger, and refused input."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memstate_core.ingest.inbox import failed_files, folder_warnings
from memstate_core.ingest.quarantine import open_count
from memstate_core.model.errors import MemstateError
from memstate_core.model.quantity import quantity
from memstate_core.night.backup.back_up import last_backup
from memstate_core.night.ledger_audit import UNREADABLE
from memstate_core.night.publication.fetch import inbox_url
from memstate_core.night.publication.note import last_publication
from memstate_core.night.publication.upload import unpublished_shards
from memstate_core.run.store import Store
from memstate_core.run.waiting import is_late, waiting_evidence
from memstate_core.state.current import named_number
from memstate_core.state.fetch_note import read_fetch_note
from memstate_core.state.ledger.ledger import TABLES
from memstate_core.state.snapshots import Snapshot, load_snapshot
from memstate_core.storage.conditional_puts import require_conditional_puts
from memstate_core.storage.published import read_note
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import storage
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.report.format import ago


def served_snapshots(store: Store, now: datetime) -> Finding:
    """Whether the served snapshots can be read, and whether evidence has waited for a night that did not come."""
    served, problems = _served(store)
    if problems:
        return Finding("snapshot", False, "; ".join(problems))
    if not served:
        return Finding("snapshot", True, "nothing published yet")
    waiting = _waiting(store, served)
    oldest, by_shard = min(served, key=Snapshot.written_at), {each.manifest.shard: each for each in served}
    age, rows = now - oldest.written_at(), sum(waiting.values())
    counted = [(by_shard.get(shard, oldest), count) for shard, count in waiting.items() if count]
    names = ", ".join(snapshot.name for snapshot in served)
    detail = f"serves {names}, published {ago(age)}; {quantity(rows, 'observations')} since"
    if any(is_late(store, snapshot, snapshot.written_at(), count, now) for snapshot, count in counted):
        return Finding(
            "snapshot", False, f"{detail}; a night is overdue: run `memstate maintain`, or see the schedule in the UI"
        )
    return Finding("snapshot", True, detail)


def _served(store: Store) -> tuple[list[Snapshot], list[str]]:
    """The served snapshots that can be read, and what is wrong with the others."""
    served, problems = list[Snapshot](), list[str]()
    for shard in store.shards:
        try:
            number = named_number(store.home, shard)
            served += [] if number is None else [load_snapshot(store.home, shard, number)]
        except MemstateError as error:
            problems.append(str(error))
    return served, problems


def _waiting(store: Store, served: Sequence[Snapshot]) -> dict[str, int]:
    """How much evidence waits, by shard; nothing if the ledger cannot be read, which is its own finding."""
    named: dict[str, Snapshot | None] = {
        **dict.fromkeys(store.shards),
        **{each.manifest.shard: each for each in served},
    }
    try:
        return {shard: found.rows for shard, found in waiting_evidence(store, named).items()}
    except UNREADABLE:
        return {}


def ledger(store: Store) -> Finding:
    """Whether every table opens; `memstate verify` reads their bytes."""
    damaged, counts = [], []
    for table in TABLES:
        try:
            counts.append(f"{store.ledger.count(table):,} {table}")
        except UNREADABLE as error:
            damaged.append(f"{table}: {type(error).__name__}")
    begun = [f"its chain was {beginning.text}" for beginning in store.ledger.chain.begun]
    if damaged:
        return Finding("ledger", False, f"cannot be read ({', '.join(damaged)}); `memstate verify` names the damage")
    return Finding("ledger", True, "; ".join([", ".join(counts), *begun]))


def refused_input(store: Store) -> Finding:
    """Whether files wait in the folders of what could not be read, or in others; rows in quarantine are counted."""
    try:
        count = open_count(store.ledger)
    except UNREADABLE as error:
        problem = f"the ledger cannot be read: {type(error).__name__}"
        return Finding("refused input", False, f"{problem}; `memstate verify` says which table is damaged")
    rows = quantity(count, "rows in quarantine") + ("; `memstate quarantine` lists them" if count else "")
    if failed := failed_files(store.home):
        advice = "mend them and move them back into the folder above, or remove them"
        return Finding("refused input", False, f"{', '.join(failed[:5])} could not be read: {advice}; {rows}")
    if folders := folder_warnings(store.home):
        return Finding("refused input", False, f"{'; '.join(folders[:5])}; {rows}")
    return Finding("refused input", True, rows)


def publication(store: Store) -> Finding:
    """Whether what is served is at the URL for replicas; one in the settings is read, and tried by conditional puts."""
    note, url = last_publication(store.home), store.settings.publish.url
    if not url:
        return Finding("publication", True, f"last to {note.where}" if note else "none is on record")
    try:
        _try_puts(store, url)
        behind = unpublished_shards(store, url)
    except MemstateError as error:
        return Finding("publication", False, error.message)
    if behind:
        return Finding("publication", False, f"{url} lacks what {', '.join(behind)} serve; run `memstate publish`")
    return Finding("publication", True, f"{url} has what is served")


def _try_puts(store: Store, url: str) -> None:
    place = storage(url, PUBLICATION)
    if read_note(place, PUBLICATION) is None:
        place.require_usable(store.home)
    require_conditional_puts(place, PUBLICATION.mark)


def remote_inbox(store: Store, now: datetime) -> Finding:
    """Whether what replicas accepted was fetched."""
    note, url = read_fetch_note(store.home), inbox_url(store.home, store.settings)
    if note is None or note.where != url:
        nothing = "replicas take no writes (publish.accept_writes)" if url is None else f"{url} was not fetched yet"
        return Finding("remote inbox", True, nothing)
    fetched = "was never fetched" if note.at is None else f"was fetched {ago(now - note.at)}"
    detail = f"{url} {fetched}; {note.waiting:,} objects waited there"
    if note.others:
        detail += f"; {len(note.others):,} are of nobody, such as {note.others[0]}: import or remove them"
    if note.problem is not None:
        detail += f"; {note.problem}"
    return Finding("remote inbox", note.problem is None and not note.others, detail)


def backup(store: Store) -> Finding:
    """When the store was backed up last."""
    last = last_backup(store.home)
    if last is None:
        return Finding("backup", True, "none is on record; `memstate backup DIR` makes one")
    return Finding("backup", True, f"backup {last.number} of {last.at[:19]}Z in {last.folder}")
