"""The strong test of law L8: a mark in every field of every kind of input, thirty nights, and then none is left."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickData, TickStatus

from memstate_core.ingest.accesses.journal import AccessJournal
from memstate_core.ingest.importer import import_paths
from memstate_core.model.text import iso
from memstate_core.run.store import Store, open_store
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.run import maintain
from tests.core.llm.scripted import Request, Response, says, serving
from tests.core.revise import nights
from tests.core.strategies import EPOCH
from tests.pipeline.conftest import fork_memstate
from tests.pipeline.erased_homes import dump, left, state
from tests.pipeline.marked_inputs import Marks, exports, observation, packed, put, refused, turns, twins

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]

NIGHTS = 30
SAYING = 9
"""Nights in which the marked scope says something."""
BEGIN = datetime(2026, 4, 1, 2, tzinfo=UTC)
SETTINGS = """[store]
niceness = 0
[ingest]
inbox_settle_seconds = 0
[policy]
topic_count_soft_limit = 3
salience_half_life_days = 2.0
half_life_growth_max = 1.0
summarise_salience_threshold = 0.9
summary_keep_revisions = 1
"""
OTHER = {"type": "user", "id": "ines"}


def night(number: int) -> datetime:
    return BEGIN + timedelta(days=number)


def rest(number: int) -> list[dict[str, Any]]:
    """What another scope says in a night: old topics that are archived, values that change, a conversation."""
    base = {"scope": OTHER, "observed_at": iso(night(number) - timedelta(hours=3))}
    yard = base | {"observation_id": f"y{number}", "topic_key": "yard", "title": "Old Ferry Yard"}
    if number % 5:
        return [base | {"observation_id": f"o{number}", "topic_key": f"k{number}", "title": f"Matter number {number}"}]
    said = {"session_id": f"c{number}", "actor": "Ines", "text": f"Serviceberry number {number} for the courtyard."}
    return [
        yard | {"fields": [{"name": "gate", "value": f"state {number}"}]},
        *(base | said | {"observation_id": f"t{number}-{turn}", "turn": turn} for turn in range(3)),
    ]


class Life:
    """Nights of a store in this process, of their steps alone: no one looks at the reports and runs of a reference."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True)
        (home / "memstate.toml").write_text(SETTINGS)

    @property
    def store(self) -> Store:
        return open_store(self.home)

    def read(self, paths: list[Path], number: int, scope: str | None = None) -> None:
        store = self.store
        report = import_paths(
            store.ledger, store.settings, paths, now=night(number), run_id=f"import-{number}", default_scope=scope
        )
        assert not report.errors

    def sleep(self, number: int) -> None:
        self.read_rest(number)
        nights.night(self.store, (night(number) - EPOCH) / timedelta(days=1))

    def read_rest(self, number: int) -> None:
        path = self.home.parent / f"rest-{number}.jsonl"
        self.read([dump(path, rest(number))], number)


class Marked(Life):
    """A life with a marked scope beside the other one, in whole nights."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.m = Marks()
        self.scope = {"type": "user", "id": self.m.name()}
        self.named = f"user:{self.scope['id']}"

    def sleep(self, number: int) -> None:
        self.read_rest(number)
        maintain(self.store, night(number))

    def inputs(self, number: int) -> None:
        """Something of another kind in each of the first nights."""
        at, inbox = iso(night(number) - timedelta(hours=3)), self.home / "inbox"
        made = {
            0: lambda: put(inbox, packed(self.m, [observation(self.m, self.scope, at) for _ in range(6)])),
            1: lambda: put(inbox, packed(self.m, [*twins(self.m, self.scope, at), *turns(self.m, self.scope, at)])),
            2: lambda: put(inbox, {f"{self.m.name()}.jsonl": _lines(refused(self.m, self.scope))}),
            3: lambda: self._exports(number),
            4: lambda: put(inbox, {"unreadable.jsonl.gz": b"\x1f\x8bcut off"}),
            6: self._accesses,
        }.get(number)
        if made is not None:
            made()
        if number < SAYING:
            self._log(number, at)

    def _log(self, number: int, at: str) -> None:
        """One more value of a field, so that its history can be summarised."""
        stage = {"name": "stage", "value": self.m(), "why_changed": self.m()}
        row = {"observation_id": self.m.name(), "scope": self.scope, "observed_at": at, "topic_key": "log"}
        self.read([dump(self.home.parent / "log.jsonl", [row | {"title": self.m(), "fields": [stage]}])], number)

    def _exports(self, number: int) -> None:
        """Exports by path, and the same as dumps that were read."""
        files = exports(self.m)
        self.read(put(self.home.parent / "exports", files), number, self.named)
        put(self.home / "inbox" / "processed", files)

    def _accesses(self) -> None:
        """The journal of a server: topics of the scope, and a line that is refused."""
        topics = self.topics()
        with AccessJournal(self.home / "accesses", "server-1") as journal:
            for topic in topics:
                journal.record(topic, night(5), "server", fields=["phone"], scope=self.named)
        (self.home / "accesses" / "other.jsonl").write_text(json.dumps({"topic_id": topics[0], "at": self.m()}) + "\n")

    def topics(self) -> list[str]:
        """The topics of the scope that are served."""
        exported = fork_memstate(self.home, "export", "--json").document["topics"]
        return [topic["id"] for topic in exported if topic["scope"] == self.named]

    def understood(self, number: int) -> None:
        """A night with a language model, which says what no one has said."""
        rows = turns(self.m, self.scope, iso(night(number) - timedelta(hours=3)), 4)
        self.read([dump(self.home.parent / "understood.jsonl", rows)], number)
        field = {"name": self.m.name(), "value": self.m(), "field_type": "string", "why_changed": self.m()}
        topic = {
            "title": self.m(),
            "summary": self.m(),
            "topic_kind": self.m.name(),
            "turns": [1, 2],
            "fields": [field],
        }

        def understanding(asked: Request) -> Response:
            return says({"topics": [topic] if "boat" in json.dumps(asked) else []})

        with serving(understanding) as script:
            section = f'[extractor]\nbase_url = "{script.url}"\nmodel = "m"\n'
            (self.home / "memstate.toml").write_text(section + SETTINGS)
            self.sleep(number)
            assert script.requests
        (self.home / "memstate.toml").write_text(SETTINGS)

    def decide(self) -> None:
        """What people do: undo, verdicts, pins, feedback, questions, dismissals, with reasons that quote."""
        merges = fork_memstate(self.home, "merges", "--json").document["merges"]
        topics, marked = self.topics(), self.m.given
        row = fork_memstate(self.home, "quarantine", "list", "--json").document["rows"][0]["quarantine_id"]
        quoting = f"asked by {self.named}"
        commands = [
            ("undo", merges[0]["id"]),
            ("review", "--decide", f"{topics[0]}:{topics[1]}=different"),
            ("pin", topics[0]),
            ("feedback", topics[0], "--used"),
            ("query", f"What of {marked[3]}?", "--record"),
            ("quarantine", "dismiss", row, "--why", quoting),
            ("quarantine", "replay", "--all"),
            ("plan", "-o", str(self.home.parent / "plan.json")),
            ("backup", str(self.home.parent / "backups")),
        ]
        for command in commands:
            answer = fork_memstate(self.home, *command)
            assert answer.code == (1 if "replay" in command else 0), (command, answer.stderr)
        self.tick()
        (self.home / "notifications.json").write_text(json.dumps({"message": f"failed at {self.m()}"}))

    def tick(self) -> None:
        """A tick of the sensor that names a dump which is being written."""
        with dagster_instance(self.store.home) as instance:
            reason = f"being written: {self.m.name()}.jsonl"
            data = TickData("o", "inbox", InstigatorType.SENSOR, TickStatus.SKIPPED, time.time(), skip_reason=reason)
            instance.create_tick(data)


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory, no_settings: None) -> tuple[Marked, Life]:
    """The marked life, and one in which the scope had never been."""
    del no_settings
    marked = Marked(tmp_path_factory.mktemp("marked") / "home")
    other = Life(tmp_path_factory.mktemp("other") / "home")
    for number in range(NIGHTS):
        marked.inputs(number)
        if number == 5:
            marked.understood(number)
        else:
            marked.sleep(number)
        other.sleep(number)
        if number == 7:
            marked.decide()
    return marked, other


def kinds(store: Store) -> set[str]:
    return set(store.ledger.scan("transitions").select("kind").unique().collect()["kind"])


def test_no_byte_of_two_hundred_marks_is_left(lives: tuple[Marked, Life]) -> None:
    marked, other = lives
    home, marks = marked.home, marked.m.given
    assert len(marks) >= 200
    assert kinds(marked.store) >= {"merged", "summarised", "archived", "segment_placed", "unmerged", "judged", "pinned"}
    before = left(home, marks)
    assert len(set().union(*before.values())) == len(marks)
    backups = home.parent / "backups"
    assert left(backups, marks)
    erased = fork_memstate(home, "erase", "--scope", marked.named, "--json")
    assert erased.code == 0, erased.stderr
    assert left(home, marks) == {}
    assert left(backups, marks) == {}
    assert any("unreadable.jsonl.gz cannot be read" in place for place in erased.document["out_of_reach"])
    assert state(marked.store) == state(other.store)
    verified = fork_memstate(home, "verify", "--deep")
    assert verified.code == 0, verified.stdout
    other.sleep(NIGHTS)
    marked.read_rest(NIGHTS)
    slept = fork_memstate(home, "maintain", "--now", iso(night(NIGHTS)))
    assert slept.code == 0, slept.stderr
    assert left(home, marks) == {}
    assert state(marked.store) == state(other.store)
