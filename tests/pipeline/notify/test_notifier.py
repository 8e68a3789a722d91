"""A fault that lasts is sent once an hour at most, and once when it ends; what is not delivered is kept and named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memstate_core.model.text import iso
from memstate_core.run.store import Store, open_store
from memstate_pipeline.doctor.notifications import notifications
from memstate_pipeline.notify.deliver import Surroundings
from memstate_pipeline.notify.message import Night, Problem
from memstate_pipeline.notify.notifier import notify_of_night, notify_test
from tests.pipeline.notify.servers import Hook

BEGAN = datetime(2026, 4, 6, 2, tzinfo=UTC)
ENVIRON = {"HOOK_SECRET": "kept quiet"}


@pytest.fixture
def store(tmp_path: Path, hook: Hook) -> Store:
    home = tmp_path / "home"
    home.mkdir()
    (home / "memstate.toml").write_text(
        f'[notify]\nwebhook_url = "{hook.url}"\nwebhook_secret_env = "HOOK_SECRET"\ntimeout_seconds = 0.5\n'
    )
    return open_store(home, {})


class Nights:
    """Nights of a store, one after the other: minutes after the first one, and the keys of their problems."""

    def __init__(self, store: Store) -> None:
        self.store, self.count = store, 0

    def __call__(self, minutes: int, *keys: str, published: bool = False, shard: str = "s0") -> Night:
        self.count += 1
        at = BEGAN + timedelta(minutes=minutes)
        problems = tuple(Problem(key, "check", key, f"{key} of {minutes}\x1b[0m", iso(at)) for key in keys)
        night = Night(f"run-{self.count}", shard, iso(at), None, published, "s0/1", None, problems)
        self.end(night, at)
        return night

    def end(self, night: Night, at: datetime) -> None:
        notify_of_night(self.store, night, at, Surroundings(ENVIRON, lambda _: None))


@pytest.fixture
def nights(store: Store) -> Nights:
    return Nights(store)


def test_a_fault_is_sent_once_an_hour_and_once_when_it_ends(nights: Nights, hook: Hook) -> None:
    nights(0, "A")
    nights(59, "A")
    assert hook.events == ["night_failed"]
    nights(60, "A")
    assert hook.events == ["night_failed"] * 2
    nights(61, published=True)
    nights(62, published=True)
    assert hook.events == ["night_failed"] * 2 + ["fault_ended"]
    first, again, ended = hook.documents
    assert [first["problems"], first["home"], first["run_id"]] == [
        [{"kind": "check", "name": "A", "message": "A of 0\\x1b[0m", "since": "2026-04-06T02:00:00Z"}],
        "home",
        "run-1",
    ]
    assert again["problems"][0]["since"] == ended["problems"][0]["since"] == "2026-04-06T02:00:00Z"
    assert (ended["run_id"], ended["at"]) == ("run-4", "2026-04-06T03:01:00Z")


def test_another_fault_is_sent_at_once_and_ends_by_itself(nights: Nights, hook: Hook) -> None:
    nights(0, "A", published=True)
    nights(1, "A", "B")
    nights(2, "A", "B")
    assert hook.events == ["night_warned", "night_failed"]
    nights(3, "A", published=True)
    assert [problem["name"] for problem in hook.documents[-1]["problems"]] == ["B"]
    nights(4, "C")
    nights(5, published=True)
    assert hook.events[2:] == ["fault_ended", "night_failed", "fault_ended"]
    ended = [problem["name"] for problem in hook.documents[-1]["problems"]]
    assert ended == ["A", "C"], "a night that failed ended neither"


def test_each_shard_has_faults_of_its_own(nights: Nights, hook: Hook) -> None:
    nights(0, "A")
    nights(1, published=True, shard="s1")
    nights(2, "A", shard="s1")
    assert [(document["event"], document["shard"]) for document in hook.documents] == [
        ("night_failed", "s0"),
        ("night_failed", "s1"),
    ]


def test_a_run_is_judged_once_also_when_it_is_seen_again_later(nights: Nights, hook: Hook) -> None:
    failed = nights(0, "A")
    nights(1, published=True)
    nights.end(failed, BEGAN + timedelta(hours=3))
    assert hook.events == ["night_failed", "fault_ended"]


def test_a_clock_that_was_set_back_silences_nothing(nights: Nights, hook: Hook) -> None:
    nights(0, "A")
    nights(-10_000, "A")
    assert hook.events == ["night_failed"] * 2


def test_what_is_not_delivered_is_a_finding_and_is_sent_with_the_next_night(nights: Nights, hook: Hook) -> None:
    hook.answers = [400]
    nights(0, "A")
    finding = notifications(nights.store, ENVIRON)
    assert not finding.ok
    assert finding.detail == (
        "webhook at http://127.0.0.1 did not take night_failed of 2026-04-06T02:00:00Z: HTTP 400;"
        " `memstate notify --test` tries again"
    )
    nights(1, "A")
    assert hook.events == ["night_failed"] * 2
    assert notifications(nights.store, ENVIRON).ok
    hook.answers = [400]
    nights(2, published=True)
    nights(3, published=True)
    nights(4, published=True)
    assert hook.events[2:] == ["fault_ended"] * 2, "the first of them was refused"


def test_a_test_message_clears_the_finding(nights: Nights, hook: Hook) -> None:
    hook.answers = [400]
    nights(0, "A")
    assert notify_test(nights.store, BEGAN, Surroundings(ENVIRON)) == {"webhook": None}
    assert hook.events == ["night_failed", "test"]
    assert notifications(nights.store, ENVIRON).ok
    assert not notifications(nights.store, {}).ok, "the secret is missing"


def test_a_home_that_cannot_be_written_and_a_damaged_file_fail_nothing(
    nights: Nights, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    file = nights.store.home.notifications
    file.write_bytes(b"\xff{")
    nights(0, "A")
    assert hook.events == ["night_failed"]
    file.unlink()
    file.mkdir()
    nights(1, "A")
    assert hook.events == ["night_failed"] * 2
    assert "the notification of run run-2 was not sent or not recorded: IsADirectoryError" in caplog.text
    assert "kept quiet" not in caplog.text


def test_nothing_is_sent_or_written_without_a_channel(store: Store, hook: Hook) -> None:
    bare = replace(store, settings=store.settings.model_copy(update={"notify": type(store.settings.notify)()}))
    Nights(bare)(0, "A")
    assert not hook.bodies
    assert not store.home.notifications.exists()
    assert notifications(bare, {}).ok
