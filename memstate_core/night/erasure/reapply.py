"""Makes erasures again in a copy of a store from before them, such as a restored backup.

A certificate names its subject by a keyed hash alone. What the copy holds is hashed in the same way, so the subject is
found wherever the copy has anything of it; observations that were erased are known by their own hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
from msgspec import json as msgjson

from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.errors import SubjectNotFound
from memstate_core.night.erasure.certificate import Certificate, hashed_subject
from memstate_core.night.erasure.erase import erase
from memstate_core.night.erasure.subject import ACTOR, OBSERVATION, RECORDED, SCOPE, SESSION, TOPIC, Subject
from memstate_core.run.store import Store
from memstate_core.state.erasure_mark import certificates
from memstate_core.state.files import replace_file
from memstate_core.state.home import Home
from memstate_core.state.ledger.erased_observations import ERASED, Erased

_WITHIN = {ACTOR: "actor", OBSERVATION: "observation_id", SESSION: "session_id"}


def certificates_in(home: Home) -> list[Certificate]:
    """The certificates of a home, in their order."""
    return [msgjson.decode(path.read_bytes(), type=Certificate) for _, path in sorted(certificates(home).items())]


def erase_again(store: Store, recorded: Path, missing: list[Certificate]) -> list[Certificate]:
    """Makes erasures again that a store has not seen; nothing else uses the store.

    Args:
        store: the copy; dumps that wait in its inbox are imported first, since they may quote a subject.
        recorded: a folder with the file `erased.json` of the store that made the erasures.
        missing: their certificates.

    Returns:
        The certificates of what was erased here; none for a subject of which the copy holds nothing.

    Raises:
        EraseRefused: a file that no run could read quotes a subject.
    """
    at = missing[-1].at
    import_inbox(store.home, store.ledger, store.settings, now=at, run_id="restore")
    known = Erased(recorded)
    done = [made for each in missing if (made := _again(store, known, each)) is not None]
    left = _left(store, known)
    if left:
        why = "erased before, and found in a backup"
        done.append(erase(store, None, Subject(RECORDED, "", evidence=left), at, missing[-1].by, why))
    _keep_refusing(store, recorded)
    return done


def _again(store: Store, known: Erased, certificate: Certificate) -> Certificate | None:
    for subject in _candidates(store, certificate.subject_kind):
        if hashed_subject(known, subject) == certificate.subject_hash:
            with suppress(SubjectNotFound):
                return erase(store, None, subject, certificate.at, certificate.by, certificate.why)
    return None


def _candidates(store: Store, kind: str) -> Iterator[Subject]:
    """Every subject of a kind that the store knows."""
    scan = store.ledger.scan
    if kind in _WITHIN:
        pairs = scan("evidence").select(_WITHIN[kind], "scope").drop_nulls().unique().collect()
        yield from (Subject(kind, value) for value in pairs[_WITHIN[kind]].unique())
        yield from (Subject(kind, value, scope) for value, scope in pairs.iter_rows())
    column = {SCOPE: "scope", TOPIC: "topic_id"}.get(kind)
    if column is not None:
        tables = [scan(table).select(column) for table in ("evidence", "transitions", "accesses")]
        yield from (Subject(kind, value) for value in pl.concat(tables).unique().collect()[column].drop_nulls())


def _left(store: Store, known: Erased) -> frozenset[str]:
    """The evidence that was erased elsewhere and is still here: of a topic that had less evidence then."""
    rows = store.ledger.scan("evidence").select("evidence_id", "scope", "observation_id", "content_sha256").collect()
    return frozenset(row[0] for row in rows.iter_rows() if known.knows(*row[1:]))


def _keep_refusing(store: Store, recorded: Path) -> None:
    """Refuses what the other store refuses, too, unless this one has a key of its own."""
    if Erased(store.ledger.root).can_become(Erased(recorded)):
        replace_file(store.ledger.root / ERASED, (recorded / ERASED).read_bytes())
