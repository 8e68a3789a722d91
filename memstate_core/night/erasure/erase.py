"""Erases a subject: the order of the steps, the marker of an erasure that was begun, and its certificate.

Invariant: every step may be repeated. The marker is written first and removed last, and the next writing command
repeats all steps as long as it is there. Files that quote the subject come before the ledger, since the ledger says
what they quote; the refusal of another import comes before that, so that no row returns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl
from msgspec import structs

from memstate_core.model.errors import EraseRefused, MemstateError, RunHistoryShared, StoreNotFound, SubjectNotFound
from memstate_core.night.backup.back_up import back_up, last_backup
from memstate_core.night.backup.folder import BackupFolder
from memstate_core.night.checkout.dumps_at_url import dumps_at_url
from memstate_core.night.checkout.note import store_url
from memstate_core.night.erasure.certificate import Begun, Certificate, certify, mark, marked
from memstate_core.night.erasure.files import (
    clear_runs,
    count_files,
    cut,
    cut_journals,
    derived,
    ended_runs,
    has_record,
    quoting,
    remove_derived,
    require_read,
    unreadable,
)
from memstate_core.night.erasure.republish import republish
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE, clear_database, ended_in_database, run_database
from memstate_core.night.erasure.subject import SCOPE, Found, Subject, find
from memstate_core.night.erasure.tables import changes, counts
from memstate_core.night.publication.fetch import fetch_inbox, inbox_url, release_imported
from memstate_core.night.publication.note import publication_url
from memstate_core.night.publication.upload import publish_to
from memstate_core.policy.settings import FILE_NAME
from memstate_core.run.base_check import require_chain
from memstate_core.run.publications import ERASURE
from memstate_core.run.store import Store
from memstate_core.state.current import served
from memstate_core.state.erasure_mark import erasures
from memstate_core.state.files import require_space
from memstate_core.state.layout import retired_shards
from memstate_core.state.ledger.erased_observations import Erased
from memstate_core.state.snapshots import combined_state_hash, numbers
from memstate_core.storage.purpose import STORE
from memstate_core.storage.storage import storage

_ALWAYS = (
    "copies that people or other programs made: dumps outside this home, exports, plans, backups in other folders",
    "what was sent to a language model, an alert, a trace or a client of the API before",
    "memory of processes that were running; the UI until it is restarted",
    "what the file system, its snapshots or the disk keep of deleted files",
)


@dataclass(frozen=True)
class RunHistory:
    """Dagster's folder outside the home, whose record of runs may be that of other homes as well.

    Attributes:
        folder: the folder.
        clears: whether its whole record of ended runs goes; None if nobody decided.
    """

    folder: Path
    clears: bool | None = None


def fetch_waiting(store: Store, at: datetime) -> None:
    """Copies what replicas accepted into the home before an erasure, which looks through the inbox.

    Args:
        store: the store.
        at: the machine's time.

    Raises:
        EraseRefused: it cannot be fetched.
    """
    url = inbox_url(store.home, store.settings)
    if url is None:
        return
    try:
        fetch_inbox(store, url, at)
    except (MemstateError, OSError) as error:
        raise EraseRefused(f"what replicas accepted cannot be looked through at {url}: {error}") from None


def survey(store: Store, history: RunHistory | None, subject: Subject) -> tuple[dict[str, int], list[str]]:
    """What an erasure would remove, and the topics that it would derive again; changes nothing.

    Raises:
        SubjectNotFound: nothing belongs to the subject.
        SubjectAmbiguous: several scopes have an observation or a session of this id.
        TopicAmbiguous: several topics have this `topic_key`.
        EraseRefused: a dump that was not read yet quotes it.
        RunHistoryShared: nobody decided whether the record of runs outside the home goes.
        HistoryUnreachable: the record of runs is in a database that does not answer.
        LedgerDamaged: the ledger is not as it was written.
    """
    _require_decided(history)
    store.ledger.chain.require_sound()
    found = find(store, subject)
    require_read(store.home, found.texts)
    files = quoting(store.home, found)
    rows = counts(found, store.ledger)
    lines = sum(hits or 0 for hits in files.values())
    whole = sum(hits is None for hits in files.values())
    if not any((*rows.values(), lines, whole)):
        raise SubjectNotFound(subject.kind, subject.value)
    removed = {**rows, "lines of dumps and journals": lines, "dumps and journals": whole}
    removed["derived files"] = sum(count_files(path) for path in derived(store.home))
    removed["runs"] = sum(map(ended_runs, _histories(store, history))) + ended_in_database(_instance(store, history))
    shards = [*store.shards, *retired_shards(store.home, store.layout)]
    removed["snapshots"] = sum(len(numbers(store.home, shard)) for shard in shards)
    return removed, found.touched.to_list()


def _require_decided(history: RunHistory | None) -> None:
    if history is not None and history.clears is None and has_record(history.folder):
        raise RunHistoryShared(str(history.folder), ended_runs(history.folder))


def _histories(store: Store, history: RunHistory | None) -> list[Path]:
    """Dagster's folders whose record of runs goes."""
    return [store.home.dagster, *([history.folder] if history is not None and history.clears is not False else [])]


def _instance(store: Store, history: RunHistory | None) -> Path:
    """The folder of Dagster's settings."""
    return store.home.dagster if history is None else history.folder


def erase(store: Store, history: RunHistory | None, subject: Subject, at: datetime, by: str, why: str) -> Certificate:
    """Erases a subject for good; the caller holds the store's lock.

    Args:
        store: the store.
        history: Dagster's folder outside the home, if there is one.
        subject: what to erase.
        at: the time on the certificate.
        by: who.
        why: the reason on the certificate.

    Raises:
        SubjectNotFound: nothing belongs to the subject.
        SubjectAmbiguous: several scopes have an observation or a session of this id.
        EraseRefused: it could not be complete.
        RunHistoryShared: nobody decided whether the record of runs outside the home goes.
        LedgerDamaged: the ledger is not as it was written; nothing was changed.
        DiskFull: the disk has no room for the new tables.
    """
    require_chain(store)
    store.ledger.chain.require_sound()
    removed, touched = survey(store, history, subject)
    require_space(store.home.root, 2 * sum(path.stat().st_size for path in _files(store.home.root)))
    begun = Begun(
        kind=subject.kind, value=subject.value, at=at, by=by, why=_without(why, subject),
        removed=removed, derived_again=touched, before=served_state(store), scope=subject.scope,
        evidence=subject.evidence,
        run_history=None if history is None else str(history.folder),
        clears_runs=history is None or history.clears is not False,
    )  # fmt: skip
    return _finish(store, begun)


def _without(why: str, subject: Subject) -> str:
    return why.replace(subject.value, "(erased)") if subject.value else why


def complete(store: Store) -> Certificate | None:
    """Completes an erasure that was interrupted, if there is one; the caller holds the store's lock."""
    begun = marked(store)
    return None if begun is None else _finish(store, begun)


def _finish(store: Store, begun: Begun) -> Certificate:
    found = _erase_rows(store, begun)
    remove_derived(store.home)
    history = None if begun.run_history is None else RunHistory(Path(begun.run_history), begun.clears_runs)
    for folder in _histories(store, history):
        clear_runs(folder)
    clear_database(_instance(store, history))
    republish(store, f"{ERASURE}{erasures(store.home) + 1}")
    out_of_reach = [
        *_left(store, begun),
        *_runs_left(history),
        *_database_left(store, history),
        *_backups(store, begun.at),
        *_fetched(store),
        *_dumps_left(store),
        *_published(store),
        *_ALWAYS,
    ]
    certificate = certify(store, begun, served_state(store), out_of_reach)
    cut_journals(store.home, found)
    store.home.begun_erasure.unlink()
    return certificate


def _erase_rows(store: Store, begun: Begun) -> Found:
    """Removes the subject from dumps, journals and ledger, while no import writes; returns what belonged to it."""
    with store.ledger.writing(f"process {os.getpid()} (memstate erase)"):
        found = find(store, begun.subject).with_gone(begun.gone)
        mark(store, structs.replace(begun, gone=found.gone.to_list()))
        cut(store.home, found)
        _rewrite(store, found)
    return found


def _rewrite(store: Store, found: Found) -> None:
    """Refuses what is erased from now on, then rewrites the ledger without it; its lock is held."""
    named = store.ledger.scan("evidence").select("evidence_id", "scope", "observation_id", "content_sha256")
    mine = named.filter(pl.col("evidence_id").is_in(found.evidence.implode())).collect()
    Erased(store.ledger.root).add(mine.drop("evidence_id").iter_rows())
    store.ledger.rewrite(changes(found, store.ledger))


def _left(store: Store, begun: Begun) -> list[str]:
    """Files of this home that people wrote and that name the subject, and dumps that cannot be looked through."""
    names = (begun.value, begun.value.partition(":")[2]) if begun.kind == SCOPE else (begun.value,)
    questions = store.settings.recall.questions
    advice = {store.home.root / name: "edit it" for name in (FILE_NAME, questions) if name}
    advice |= {store.home.keys: "`memstate keys` revokes keys"}
    named = [
        f"{path.name} names it; {what}"
        for path, what in advice.items()
        if path.is_file() and any(name and name in path.read_text(errors="replace") for name in names)
    ]
    return [*named, *(f"{path} cannot be read; look through it" for path in unreadable(store.home))]


def _database_left(store: Store, history: RunHistory | None) -> list[str]:
    """What may be left in a database with Dagster's record of runs."""
    if run_database(_instance(store, history)):
        return ["backups and write-ahead logs of the database with Dagster's record of runs"]
    if store.settings.store.url:
        return [
            f"a database with Dagster's record of runs, if other machines share one: {POSTGRES_VARIABLE} is not set"
        ]
    return []


def _runs_left(history: RunHistory | None) -> list[str]:
    if history is None or history.clears is not False:
        return []
    return [f"Dagster's record of runs in {history.folder}, which was left; delete the runs of this store there"]


def _backups(store: Store, at: datetime) -> list[str]:
    """Replaces the backups in the folder of the last one by a new backup; says what it could not replace."""
    known = last_backup(store.home)
    if known is None:
        return []
    try:
        back_up(store, known.folder, at, keep=1)
    except (MemstateError, OSError) as error:
        return [f"backups in {known.folder}: {error}; `memstate backup {known.folder} --keep 1` replaces them"]
    others = BackupFolder(known.folder).numbers()[:-1]
    named = ", ".join(map(str, others))
    return [f"backups {named} in {known.folder}, which were made of another home"] if others else []


def _dumps_left(store: Store) -> list[str]:
    """Dumps at the URL of the store that this command could not take, as they are being written or cannot be read."""
    where = store_url(store)
    left = sorted(dumps_at_url(storage(where, STORE))) if where else []
    return [f"{where}/{name}, which was not taken yet: a later command imports it" for name in left]


def _fetched(store: Store) -> list[str]:
    """Removes at the URL what the home has copies of, since those were looked through; says what it could not reach."""
    url = inbox_url(store.home, store.settings)
    if url is None:
        return []
    try:
        release_imported(store, url, all_copied=True)
    except (MemstateError, OSError) as error:
        return [f"what replicas accepted before, at {url}: {error}"]
    return []


def _published(store: Store) -> list[str]:
    """Publishes to the URL of the store again, which removes what was there before; says what it could not reach."""
    url = publication_url(store.home, store.settings)
    if url is None:
        return []
    replicas = f"caches of replicas of {url} that are not running, which remove it when they start"
    try:
        publish_to(store, url)
    except (MemstateError, OSError) as error:
        return [f"snapshots at {url}: {error}", replicas]
    return [replicas]


def served_state(store: Store) -> str | None:
    """The combined state hash of what is served; None if nothing is."""
    try:
        found = served(store.home, store.shards)
    except StoreNotFound:
        return None
    hashes = {snapshot.manifest.shard: snapshot.manifest.state_hash for snapshot in found}
    return combined_state_hash(hashes)


def _files(root: Path) -> list[Path]:
    folders = (root / "ledger", root / "snapshots")
    return [path for folder in folders if folder.is_dir() for path in folder.rglob("*") if path.is_file()]
