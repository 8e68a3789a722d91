"""Notifies of the end of a night: at most once an hour of a fault that lasts, once when it ends.

Invariant: nothing here makes a night fail. What cannot be delivered is a warning in the log and a finding of
`memstate doctor`, and is sent with the next night.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from memstate_core.model.text import iso
from memstate_core.run.store import Store
from memstate_core.state.home import Home
from memstate_core.state.lock import exclusive
from memstate_pipeline.cli.shared.terminal import cut, visible
from memstate_pipeline.notify.deliver import DEADLINE_SECONDS, Surroundings, deliver
from memstate_pipeline.notify.history import Fault, Known, ShardFaults, read_known, write_known
from memstate_pipeline.notify.message import (
    LONGEST,
    Event,
    Night,
    Problem,
    night_document,
    stale_document,
    test_document,
)

_log = logging.getLogger("memstate.notify")
_AS_HERE = Surroundings(os.environ)


def notify_of_night(store: Store, night: Night, now: datetime, given: Surroundings = _AS_HERE) -> None:
    """Notifies of a night, if notifications are configured and the night was not judged before; never fails.

    Args:
        store: the store.
        night: the night.
        now: the machine's time, from which the hour is counted, and which is signed.
        given: environment and waiting.
    """
    if not store.settings.notify.configured:
        return
    try:
        with _known(store.home) as known:
            shard = known.shards.setdefault(night.shard, ShardFaults())
            if night.run_id not in shard.runs:
                shard.judged(night.run_id)
                _judge(store, known, night, now, given)
    except Exception as error:  # noqa: BLE001 (a notification never fails a night)
        problem = f"{type(error).__name__}: {error}"
        _log.warning("the notification of run %s was not sent or not recorded: %s", night.run_id, visible(problem))


def notify_of_stale(
    store: Store, shard: str, snapshot: str, written: datetime, now: datetime, given: Surroundings = _AS_HERE
) -> None:
    """Notifies of a served snapshot that went stale, at most once an hour; the next night that publishes ends it.

    Args:
        store: the store.
        shard: its shard.
        snapshot: its name.
        written: when it was published.
        now: the machine's time.
        given: environment and waiting.
    """
    if not store.settings.notify.configured:
        return
    problem = Problem(
        "stale",
        "warning",
        None,
        f"{snapshot} is served; the last night published at {iso(written.replace(microsecond=0))}",
        iso(now),
    )
    try:
        with _known(store.home) as known:
            faults = known.shards.setdefault(shard, ShardFaults())
            problem, before = _since(faults, problem), faults.faults.get(problem.key)
            document = stale_document(store.home.root.name, shard, snapshot, iso(now), problem)
            if (before is None or before.is_due(now)) and _send(store, known, document, now, given):
                faults.faults[problem.key] = _fault(problem, iso(now))
    except Exception as error:  # noqa: BLE001 (a sensor that notifies goes on)
        _log.warning("stale %s was not notified of: %s", snapshot, visible(f"{type(error).__name__}: {error}"))


def notify_test(store: Store, now: datetime, given: Surroundings = _AS_HERE) -> dict[str, str | None]:
    """Sends a test message over every channel.

    Returns:
        For each configured channel None if it took the message, else why not.

    Raises:
        StoreLocked: another process sends notifications of this home.
        OSError: the result cannot be kept.
    """
    with _known(store.home) as known:
        document = test_document(store.home.root.name, iso(now))
        results = deliver(store.settings.notify, document, now, given)
        known.record(document["event"], iso(now), results)
        return results


@contextmanager
def _known(home: Home) -> Iterator[Known]:
    """What is known, kept when the block ends; one process at a time."""
    holder = f"process {os.getpid()} (notification)"
    with exclusive(home.notifications.with_suffix(".lock"), holder, DEADLINE_SECONDS):
        known = read_known(home)
        yield known
        write_known(home, known)


def _judge(store: Store, known: Known, night: Night, now: datetime, given: Surroundings) -> None:
    """Sends what ended and what is new or lasts, and records it."""
    shard, home = known.shards[night.shard], store.home.root.name
    problems = tuple(_since(shard, problem) for problem in night.problems)
    keys = {problem.key for problem in problems}
    ended = [key for key in shard.faults if night.is_published and key not in keys]
    sent = tuple(_problem(key, shard.faults[key]) for key in ended if shard.faults[key].sent_at is not None)
    if not sent or _send(store, known, night_document("fault_ended", home, night, sent), now, given):
        for key in ended:
            del shard.faults[key]
    for problem in problems:
        before = shard.faults.get(problem.key)
        shard.faults[problem.key] = _fault(problem, before.sent_at if before else None)
    if not any(shard.faults[key].is_due(now) for key in keys):
        return
    event: Event = "night_warned" if night.is_published else "night_failed"
    if _send(store, known, night_document(event, home, night, problems), now, given):
        shard.faults |= {problem.key: _fault(problem, iso(now)) for problem in problems}


def _send(store: Store, known: Known, document: dict[str, Any], now: datetime, given: Surroundings) -> bool:
    """Delivers a document and records the results; returns whether any channel took it."""
    return known.record(document["event"], iso(now), deliver(store.settings.notify, document, now, given))


def _since(shard: ShardFaults, problem: Problem) -> Problem:
    before = shard.faults.get(problem.key)
    return problem if before is None else replace(problem, since=before.since)


def _fault(problem: Problem, sent_at: str | None) -> Fault:
    return Fault(problem.kind, problem.name, cut(problem.message, LONGEST), problem.since, sent_at)


def _problem(key: str, fault: Fault) -> Problem:
    return Problem(key, fault.kind, fault.name, fault.message, fault.since)
