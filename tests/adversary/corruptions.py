"""Corrupted files of a home: noticed and named, mended, or without any effect; data never changes in silence.

A home with two published nights, and with evidence, files of the API and accesses that wait for the third, is copied;
one file of the copy is damaged. Then `verify` names it, or the third night refuses and names it, or reports it, or
comes to the state of the undamaged home.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from memstate_core.embed.vector_cache import embed
from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.inbox import import_inbox
from memstate_core.llm.answer_cache import AnswerCache, Reply
from memstate_core.model.errors import MemstateError, SnapshotDamaged
from memstate_core.model.ids import uuid_text
from memstate_core.night.rebuild import rebuild
from memstate_core.night.verify import verify_store
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.export import export_records
from memstate_core.run.begin import begin_run
from memstate_core.run.store import Store
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.state.current import current_snapshot, served
from tests.adversary.attack import a_store, imported, opened
from tests.adversary.damage import KINDS, damaged
from tests.adversary.rows import MINE, rows_of
from tests.core.revise.nights import night
from tests.core.strategies import day

THIRD = 8
TEXTS = ("The gate is open", "The ferry is late", "A lamp for the yard")
REPLY = Reply("the answer of a model", False, 7)


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        files: lists the files of a home.
        unnoticed: damage that nobody can see: a file that is gone, or lacks lines at its end, and was the only one to
            know of them.
    """

    files: Callable[[Store], list[Path]]
    unnoticed: frozenset[str] = frozenset()


def _below(folder: Callable[[Store], Path], *patterns: str) -> Callable[[Store], list[Path]]:
    return lambda store: sorted(
        path for pattern in patterns for path in folder(store).glob(pattern) if path.is_file() and path.stat().st_size
    )


def snapshot_files(store: Store) -> list[Path]:
    """The files of the served snapshot."""
    (snapshot,) = served(store.home, store.shards)
    return sorted(path for path in snapshot.path.rglob("*") if path.is_file())


FILES: dict[str, Kind] = {
    "snapshot": Kind(snapshot_files),
    "manifest": Kind(lambda store: [path for path in snapshot_files(store) if path.name == "manifest.json"]),
    "CURRENT": Kind(_below(lambda store: store.home.snapshots("s0"), "CURRENT")),
    "older snapshot": Kind(_below(lambda store: store.home.snapshots("s0") / "1", "**/*")),
    "ledger log": Kind(_below(lambda store: store.home.ledger, "*/_delta_log/*.json")),
    "ledger data": Kind(_below(lambda store: store.home.ledger, "*/*.parquet", "*/*/*.parquet")),
    "ledger chain": Kind(_below(lambda store: store.home.ledger, "chain.jsonl")),
    "inbox": Kind(_below(lambda store: store.home.inbox, "api-*.jsonl"), frozenset({"delete", "other"})),
    "inbox key": Kind(lambda store: [store.home.inbox_key]),
    "accesses": Kind(
        _below(lambda store: store.home.accesses, "*.jsonl"), frozenset({"delete", "empty", "cut", "other"})
    ),
    "vectors": Kind(lambda store: [store.home.cache]),
    "answers": Kind(lambda store: [store.home.answers]),
    "settings": Kind(lambda store: [store.home.root / "memstate.toml"]),
    "work": Kind(_below(lambda store: store.home.work("s0"), "**/*")),
    "locks": Kind(_below(lambda store: store.home.root, "run.holder.json", "ledger/ledger.holder.json")),
}


def attack(random: Random, folder: Path, count: int = 16, kinds: Sequence[str] = tuple(FILES)) -> int:
    """Damages one file after another, each in a copy of a home, of each kind in turn."""
    sound = _prepared(random, folder / "sound")
    assert _complaints(sound) == []
    shown = _exported(sound)
    calm = _copied(sound, folder / "calm")
    assert _ignored(calm) == []
    expected = _third_night(calm)
    order = random.sample(kinds, len(kinds))
    for number in range(count):
        store = _copied(sound, folder / f"copy-{number}")
        kind = order[number % len(order)]
        path = random.choice(FILES[kind].files(store))
        how = random.choice([each for each in KINDS if each not in FILES[kind].unnoticed])
        if damaged(path, how, random):
            _check(store, path, f"{how} of {kind}: {path.relative_to(store.home.root)}", shown, expected)
        shutil.rmtree(store.home.root)
    return count


def _check(store: Store, path: Path, case: str, shown: str, expected: str) -> None:
    """Nothing changed in silence."""
    refusal = _refused(lambda: opened(store.home.root))
    if refusal is None:
        found = _complaints(store)
        assert found or _exported(store) == shown, f"{case} changed what is served, in silence"
        reports, states = list[str](), list[str]()
        refusal = _refused(lambda: reports.extend(_ignored(store)), lambda: states.append(_third_night(store)))
        is_other_policy = path.name == "memstate.toml"
        assert found or reports or refusal or is_other_policy or states == [expected], (
            f"{case} changed a night in silence"
        )
        _check_caches(store, case)
    if refusal is not None:
        assert _names(store.home.root, path, refusal.message), f"{case} is not named: {refusal.message}"
    if isinstance(refusal, SnapshotDamaged):
        _mend(store, case, expected)


def _refused(*steps: Callable[[], object]) -> MemstateError | None:
    """Takes steps; returns the error with which one refuses."""
    try:
        for step in steps:
            step()
    except MemstateError as error:
        return error
    return None


def _mend(store: Store, case: str, expected: str) -> None:
    """`memstate rebuild` makes the served snapshot again, and the night goes on from it."""
    again = opened(store.home.root)
    rebuild(again, "s0", "mended")
    assert _third_night(again) == expected, case


def _names(home: Path, path: Path, message: str) -> bool:
    """Whether a message has the name of a file, or of its table or snapshot; the path of the home does not count.

    A line of the ledger's chain that names a file that does not exist is no different from a missing file.
    """
    place, said = path.relative_to(home).parts, message.replace(str(home), "")
    table = place[1] if len(place) > 2 else "ledger"
    within = {"ledger": table, "snapshots": "/".join(place[1:3])}.get(place[0], path.name)
    return path.name in said or within in said


def _check_caches(store: Store, case: str) -> None:
    found = embed(store.home.cache, store.encoder, TEXTS).vectors
    assert np.allclose(found, store.encoder.encode(TEXTS), atol=1e-5), case
    with closing(AnswerCache(store.home.answers)) as answers:
        assert answers.get("key") in (None, REPLY), case


def _prepared(random: Random, folder: Path) -> Store:
    store = a_store(folder, "[policy]\nmerge_probability = 0.97\n")
    for number, at in enumerate((4, 6)):
        imported(store, rows_of(random, MINE, 6, f"mine{number}"), at=at)
        night(store, at + 1)
    imported(store, rows_of(random, MINE, 4, "later"), at=7)
    inbox = InboxWriter(store.home.inbox, store.home.inbox_key)
    for part in ("one", "two"):
        inbox.append(b"".join(json.dumps(row).encode() + b"\n" for row in rows_of(random, MINE, 3, part)))
    with AccessJournal(store.home.accesses, "segment") as journal:
        for number in range(4):
            topic = uuid_text("key", MINE, f"mine0{number}")
            journal.record(topic, day(7), "server", failed=number == 3, fields=["owner"], scope=MINE)
    embed(store.home.cache, store.encoder, TEXTS)
    with closing(AnswerCache(store.home.answers)) as answers:
        answers.put("key", REPLY)
    begin_run(store, "s0", "killed", day(THIRD))
    for name in ("run.holder.json", "ledger/ledger.holder.json"):
        (store.home.root / name).write_text(json.dumps({"holder": "killed"}))
    return store


def _copied(store: Store, folder: Path) -> Store:
    shutil.copytree(store.home.root, folder)
    return opened(folder)


def _ignored(store: Store) -> list[str]:
    """What the third night reports when it reads the inbox and the journal: failed files and refused lines."""
    report = import_inbox(store.home, store.ledger, store.settings, now=day(THIRD), run_id="third")
    accesses = collect_accesses(store.home, store.ledger, store.settings, day(THIRD), "third")
    refused = [f"{accesses.quarantined} accesses refused"] if accesses.quarantined else []
    return [error.message for error in report.errors] + [*report.reasons, *refused]


def _third_night(store: Store) -> str:
    night(store, THIRD)
    snapshot = current_snapshot(store.home, "s0")
    assert snapshot is not None
    return snapshot.manifest.state_hash


def _exported(store: Store) -> str:
    with ExitStack() as stack:
        readers = [stack.enter_context(SnapshotReader(each)) for each in served(store.home, store.shards)]
        return json.dumps(list(export_records(readers)), sort_keys=True, default=str)


def _complaints(store: Store) -> list[str]:
    try:
        return [each.name for verdicts in verify_store(store).values() for each in verdicts if not each.passed]
    except MemstateError as error:
        return [error.message]
