"""What an erasure leaves: the marker while it is not complete, and the certificate afterwards."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, to_builtins
from msgspec import json as msgjson

from memstate_core.model.text import iso
from memstate_core.night.erasure.subject import Subject
from memstate_core.run.store import Store
from memstate_core.state.erasure_mark import erasures
from memstate_core.state.files import make_folder, replace_file
from memstate_core.state.ledger.erased_observations import Erased


class Begun(Struct, frozen=True, kw_only=True):
    """The marker: what is being erased, and what the certificate will say of it. It is removed at the end.

    `gone` are the topics that go, since the ledger no longer says so once it is rewritten. `run_history` is Dagster's
    folder outside the home, and `clears_runs` whether its record of runs goes as well.
    """

    kind: str
    value: str
    at: datetime
    by: str
    why: str
    removed: dict[str, int]
    derived_again: list[str]
    before: str | None
    scope: str | None = None
    gone: list[str] = []
    evidence: frozenset[str] = frozenset()
    run_history: str | None = None
    clears_runs: bool = True

    @property
    def subject(self) -> Subject:
        """What is being erased."""
        return Subject(self.kind, self.value, self.scope, self.evidence)


class Certificate(Struct, frozen=True, kw_only=True):
    """What an erasure did; it names the subject by a keyed hash alone.

    Attributes:
        number: its number in this home.
        subject_kind: scope, topic, actor, observation or session; in a restored backup also recorded: observations
            that were erased before.
        subject_hash: keyed hash of the value; the key stays in the store.
        at: when.
        by: the user of the process.
        why: the reason given.
        removed: rows of each table, files and lines, runs, snapshots.
        derived_again: the topics that stay and were folded again without it.
        state_hash_before: the state hash of what was served before; None if nothing was.
        state_hash_after: that of what is served now.
        out_of_reach: what may still hold the subject.
    """

    number: int
    subject_kind: str
    subject_hash: str
    at: datetime
    by: str
    why: str
    removed: dict[str, int]
    derived_again: list[str]
    state_hash_before: str | None
    state_hash_after: str | None
    out_of_reach: list[str]


def mark(store: Store, begun: Begun) -> None:
    """Records that an erasure has begun, durably."""
    make_folder(store.home.erasures)
    replace_file(store.home.begun_erasure, msgjson.encode(begun))


def marked(store: Store) -> Begun | None:
    """The erasure that was begun and is not complete; None if there is none."""
    marker = store.home.begun_erasure
    return msgjson.decode(marker.read_bytes(), type=Begun) if marker.exists() else None


def certify(store: Store, begun: Begun, after: str | None, out_of_reach: list[str]) -> Certificate:
    """Writes the certificate. Processes that read the home let go of what they hold when they see it."""
    certificate = Certificate(
        number=erasures(store.home) + 1,
        subject_kind=begun.kind,
        subject_hash=hashed_subject(Erased(store.ledger.root), begun.subject),
        at=begun.at,
        by=begun.by,
        why=begun.why,
        removed=begun.removed,
        derived_again=begun.derived_again,
        state_hash_before=begun.before,
        state_hash_after=after,
        out_of_reach=out_of_reach,
    )
    path = store.home.erasures / f"{certificate.number}.json"
    replace_file(path, msgjson.format(msgjson.encode(certificate)))
    return certificate


def hashed_subject(erased: Erased, subject: Subject) -> str:
    """The keyed hash that stands for a subject on a certificate."""
    return erased.hashed(subject.kind, subject.value, *(() if subject.scope is None else (subject.scope,)))


def document(certificate: Certificate) -> dict[str, object]:
    """A certificate as JSON values, times as text."""
    return {**to_builtins(certificate), "at": iso(certificate.at)}
