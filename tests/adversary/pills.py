"""Pills: accepted or refused rows with one hostile value each, of which none may stop a night."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.state.memory import memory_budget
from tests.adversary.attack import Row, a_store, imported, opened
from tests.core.revise.nights import night, topics

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
)


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
    """All pills in one night: it publishes, and each row is evidence, known or refused."""
    store = a_store(folder / "home")
    rows = pills(random, count)
    report = imported(store, rows, at=4)
    assert report.read == count == report.accepted + report.duplicate + report.quarantined
    with memory_budget(BUDGET_MIB):
        night(store, 5)
    return count


def alone(random: Random, folder: Path, count: int = 8) -> int:
    """Pills of different kinds, larger ones too, each in a night of its own after a sound one."""
    sound = a_store(folder / "sound")
    imported(sound, [{"title": "Yard", "observed_at": "2026-01-01"}], at=4)
    night(sound, 5)
    kinds = random.sample(list(product(TEXTS, _PLACES)), count)
    for number, (text, poisoned) in enumerate(kinds):
        row = _plain(number, random) | poisoned(text(random.choice(LARGE)), random)
        store = opened(Path(shutil.copytree(sound.home.root, folder / f"home-{number}")))
        report = imported(store, [row], at=6)
        assert report.read == 1 == report.accepted + report.quarantined, json.dumps(row)[:500]
        began = time.process_time()
        with memory_budget(BUDGET_MIB):
            night(store, 7)
        assert time.process_time() - began < SECONDS, json.dumps(row)[:500]
        assert "Yard" in topics(store)["title"].to_list()
        shutil.rmtree(store.home.root)
    return count
