"""Pills: accepted or refused rows and accesses with one hostile value each, of which none may stop a night."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, product
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.ingest.accesses.collect import AccessReport, collect_accesses
from memstate_core.ingest.report import ImportReport
from memstate_core.model.ids import uuid_text
from memstate_core.run.store import Store
from memstate_core.state.process.memory import memory_budget
from tests.adversary.attack import Row, a_store, imported, opened
from tests.core.revise.nights import night, topics
from tests.core.strategies import day

BUDGET_MIB = 6144
COUNT = 1000
SIZES = (1, 40, 300, 1_500)
LARGE = (*SIZES, 20_000, 120_000)
SECONDS = 60
"""Most CPU time of a night with one hostile row; it takes about a second, and many where a step is superlinear."""

TEXTS: tuple[Callable[[int], str], ...] = (
    lambda n: "x" * n,
    lambda n: "a " * (n // 2),
    lambda n: "a\n" * (n // 2),
    lambda n: " ".join(f"w{at:05}" for at in range(n // 7)),
    lambda n: "." * n,
    lambda n: "[" * n,
    lambda n: "<a [x] " * (n // 7),
    lambda n: "e\u0301\u0323" * (n // 3),
    lambda n: "\ufdfa" * (n // 4),
    lambda n: "\u9676\u827a" * (n // 2),
    lambda n: "\u202eabc\u200b" * (n // 5),
    lambda n: "👩‍👩‍👧‍👦" * (n // 7),
    lambda n: "it is Name now. " * (n // 16),
    lambda n: "a@b.example " * (n // 12),
    lambda n: "http://x.example/" + "y" * n,
    lambda n: "\\\"'`;--" * (n // 7),
    lambda n: "$r.id} DETACH DELETE r //" + " " * n,
    lambda n: "%s%n{0}{x}" * (n // 10),
    lambda n: "\x00\x07\x1b[31m" * (n // 8),
    lambda n: "1" * n,
    lambda n: "NaN" if n < 100 else "-Infinity",
    lambda n: "2026-13-45T99:99:99Z " * (n // 21),
)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63 - 1, 2**63, 10**300, 1e308, 5e-324, "", " ", "\u0000", [], {}, [None], [[[[[]]]]],
    {"": ""},
    {"a": {"b": {"c": [1, "x", None]}}}, ["x"] * 200, {str(n): n for n in range(200)},
)  # fmt: skip
MOMENTS = (
    "0001-01-01", "1600-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-01-01T00:00:00+14:00", "2026-01-02T24:00:00Z",
    "9999-12-31T23:59:59Z", "", "now", "2026-01-01T00:00:00.000000001Z",
)  # fmt: skip
TYPES = ("string", "int", "float", "bool", "date", "datetime", "list", "json", "object", "")


def pills(random: Random, count: int) -> list[Row]:
    """Rows of every kind, in a random order."""
    made = [pill for _, pill in zip(range(count), _endless(random), strict=False)]
    random.shuffle(made)
    return made


def _endless(random: Random) -> Iterator[Row]:
    number = 0
    while True:
        for text in TEXTS:
            hostile = text(random.choice(SIZES))
            for poisoned in _PLACES:
                number += 1
                yield _plain(number, random) | poisoned(hostile, random)


def _plain(number: int, random: Random) -> Row:
    scope = {"type": "user", "id": f"u{random.randrange(4)}"}
    minute = f"{random.randrange(24):02}:{random.randrange(60):02}"
    return {
        "observation_id": f"pill/{number}",
        "scope": scope,
        "observed_at": f"2026-01-0{1 + number % 3}T{minute}:00Z",
    }


def _turn(**own: Any) -> Row:
    return {"kind": "user_message", "actor": "Ines", "session_id": "chat", "text": "The gate is open"} | own


_PLACES: tuple[Callable[[str, Random], Row], ...] = (
    lambda text, _: _turn(text=text),
    lambda text, _: _turn(actor=text),
    lambda text, _: _turn(session_id=text),
    lambda text, random: _turn(text=text, turn=random.choice((0, -1, 2**31, 2**63 - 1))),
    lambda text, _: {"title": text},
    lambda text, _: {"title": "Gate", "summary": text},
    lambda text, _: {"title": "Gate", "topic_kind": text},
    lambda text, _: {"topic_key": text, "title": "Gate"},
    lambda text, _: {"topic_id": text, "title": "Gate"},
    lambda text, _: {"title": "Gate", "source_uri": text},
    lambda text, _: {"topic_key": "gate", "fields": [{"name": text, "value": "open"}]},
    lambda text, random: {"topic_key": "gate", "fields": [_field(text, random)]},
    lambda text, random: {"topic_key": "gate", "fields": [_field(text, random) for _ in range(40)]},
    lambda text, _: {"topic_key": "gate", "edges": [{"to_topic_key": text, "kind": "part_of"}]},
    lambda text, _: {"topic_key": "gate", "edges": [{"to_topic_key": "yard", "kind": text}]},
    lambda text, random: {"title": text[:50] or "Gate", "observed_at": random.choice(MOMENTS)},
    lambda text, random: {"memory": _block(text, random)},
    lambda text, random: {"memory": _block(text, random)},
)


_ACCESSED: tuple[Callable[[str, Random], Row], ...] = (
    lambda text, _: {"topic_id": text},
    lambda text, _: {"source": text},
    lambda text, _: {"scope": f"user:{text}"},
    lambda text, _: {"scope": text},
    lambda text, _: {"fields": [text]},
    lambda text, _: {"fields": [f"{text[:1000]}{n}" for n in range(900)]},
    lambda text, random: {"at": random.choice((text, *MOMENTS))},
    lambda text, random: {"crc32": random.choice((text, *VALUES))},
    lambda text, random: {"failed": random.choice((text, *VALUES))},
    lambda _, random: {random.choice(("topic_id", "at", "source", "fields", "scope")): random.choice(VALUES)},
    lambda text, _: {text: text},
)


def access_pills(random: Random, count: int) -> list[Row]:
    """Accesses of every kind, most of topics that the other pills make, in a random order."""
    kinds = list(islice(cycle(product(TEXTS, _ACCESSED)), count))
    made = [_access(random) | poisoned(text(random.choice(SIZES)), random) for text, poisoned in kinds]
    random.shuffle(made)
    return made


def _access(random: Random) -> Row:
    scope = f"user:u{random.randrange(4)}"
    topic_id, fields = uuid_text("key", scope, "gate"), random.choice((None, ["open"], ["open", "owner"]))
    at = f"2026-01-0{random.randrange(1, 5)}T12:00:00Z"
    return {"topic_id": topic_id, "at": at, "source": "pill", "fields": fields, "failed": random.random() < 0.2}


def _block(text: str, random: Random) -> Row:
    plain = {"type": "core_block", "label": "persona", "content": "Keep it short"}
    hostile = random.choice(({"label": text}, {"content": text}, {"type": text}, {text: text}))
    odd = random.choice(({}, {"authority": random.choice(VALUES)}, {"read_only": random.choice(VALUES)}))
    return plain | hostile | odd


def _field(text: str, random: Random) -> Row:
    value = random.choice((text, *VALUES))
    return {
        "name": random.choice(("open", "owner", text[:60])),
        "value": value,
        "field_type": random.choice(TYPES),
        "why_changed": text,
        "confidence": random.choice((None, 0, 1, -1, 2, 0.5, 1e300)),
        "valid_from": random.choice((None, *MOMENTS)),
    }


def together(random: Random, folder: Path, count: int = COUNT) -> int:
    """All pills in one night: it publishes, and each row is evidence or an access, known or refused."""
    store = a_store(folder / "home")
    rows, accesses = pills(random, count), access_pills(random, count // 2)
    report = imported(store, rows, at=4)
    assert report.read == count == report.accepted + report.duplicate + report.quarantined
    found = collected(store, accesses, at=5)
    assert found.read == len(accesses) == found.accepted + found.quarantined
    assert found.accepted > len(accesses) // 5
    with memory_budget(BUDGET_MIB):
        night(store, 5)
    return count + len(accesses)


def collected(store: Store, accesses: Sequence[Row], at: int) -> AccessReport:
    """Collects accesses as one segment of the journal, on a day; some may be refused."""
    store.home.accesses.mkdir(exist_ok=True)
    lines = "".join(json.dumps(access) + "\n" for access in accesses)
    (store.home.accesses / "pills.jsonl").write_text(lines, encoding="utf-8")
    return collect_accesses(store.home, store.ledger, store.settings, day(at), f"accesses-{at}")


def alone(random: Random, folder: Path, count: int = 8) -> int:
    """Pills of different kinds, larger ones too, each in a night of its own after a sound one: rows, then accesses."""
    sound = a_store(folder / "sound")
    imported(sound, [{"title": "Yard", "observed_at": "2026-01-01"}], at=4)
    night(sound, 5)
    kinds = random.sample(list(product(TEXTS, _PLACES)), count)
    for number, (text, poisoned) in enumerate(kinds):
        row = _plain(number, random) | poisoned(text(random.choice(LARGE)), random)
        _night_with(sound, folder, row, lambda store, row: imported(store, [row], at=6))
    accessed = random.sample(list(product(TEXTS, _ACCESSED)), count)
    for text, poisoned in accessed:
        access = _access(random) | poisoned(text(random.choice(LARGE)), random)
        _night_with(sound, folder, access, lambda store, row: collected(store, [row], at=6))
    return 2 * count


def _night_with(
    sound: Store, folder: Path, pill: Row, added: Callable[[Store, Row], ImportReport | AccessReport]
) -> None:
    """Adds one pill to a copy of a sound store, which is accepted or refused, and runs a night within the bounds."""
    shown = json.dumps(pill)[:500]
    store = opened(Path(shutil.copytree(sound.home.root, folder / "home")))
    report = added(store, pill)
    assert report.read == 1 == report.accepted + report.quarantined, shown
    began = time.process_time()
    with memory_budget(BUDGET_MIB):
        night(store, 7)
    assert time.process_time() - began < SECONDS, shown
    assert "Yard" in topics(store)["title"].to_list()
    shutil.rmtree(store.home.root)
