"""Questions that were answered, kept by consent, so that the next night can be asked them before it is published.

A file for each day, JSON lines as `memstate eval` reads them: the question, its scopes, when it was asked, and the ids
of the best of what was found. They are recorded for this alone and are named by file and line everywhere else.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.model.ids import sha256_text
from memstate_core.model.text import iso
from memstate_core.policy.sections.recall import RecallSettings
from memstate_core.retrieve.evaluation.recall import MALFORMED, Expected, parsed_question
from memstate_core.retrieve.query import STAGES, Question
from memstate_core.state.files import PRIVATE_FILE, make_folder

TOPICS, EVIDENCE = 3, 5
"""How many of the topics and pieces of evidence of an answer a later one should find."""

MOST_BYTES = 4 << 20
"""Size of a day's file from which no more is recorded."""

_log = logging.getLogger("memstate.recall")


class QuestionRecorder:
    """Appends questions; any number of threads and processes may.

    Args:
        folder: the recorded questions of a home.
        settings: what may be recorded.
    """

    def __init__(self, folder: Path, settings: RecallSettings) -> None:
        self._folder, self._settings = folder, settings
        self._reported = ""

    def consents(self, question: Question) -> bool:
        """Whether a question is one to record: consented to, in the sample, and about what is known now."""
        settings, plain = self._settings, not (question.topic_ids or question.field_names or question.as_of)
        if not settings.record or not plain or question.stages != STAGES or not question.text.strip():
            return False
        asked = set(question.scopes or ())
        within = not settings.record_scopes or (bool(asked) and asked <= set(settings.record_scopes))
        drawn = int(sha256_text(f"{question.text}\0{sorted(asked)}")[:8], 16) / 2**32
        return within and drawn < settings.sample

    def record(self, question: Question, found: Mapping[str, Any], at: datetime) -> bool:
        """Records a question with the best of its answer; returns whether it was.

        Nothing that goes wrong here fails the question: it is logged once.

        Args:
            question: what was asked.
            found: the answer (`memstate_core.retrieve.query.answer`).
            at: now.
        """
        topics = [each["topic_id"] for each in found["candidates"][:TOPICS]]
        observations = [each["observation_id"] for each in found["evidence"][:EVIDENCE]]
        if not self.consents(question) or not (topics or observations):
            return False
        scopes = {"scopes": list(question.scopes)} if question.scopes else {}
        row = {"q": question.text, **scopes, "topics": topics, "observations": observations}
        row["at"] = iso(question.asked_at or at)
        try:
            return self._append(f"{at:%Y-%m-%d}.jsonl", json.dumps(row, ensure_ascii=False).encode() + b"\n")
        except OSError as error:
            if str(error) != self._reported:
                _log.error("questions cannot be recorded: %s", error)
            self._reported = str(error)
            return False

    def _append(self, name: str, line: bytes) -> bool:
        """Appends a line in one write, which the system keeps apart from those of others."""
        make_folder(self._folder)
        handle = os.open(self._folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
        try:
            fits = os.fstat(handle).st_size + len(line) <= MOST_BYTES
            return fits and os.write(handle, line) == len(line)
        finally:
            os.close(handle)


def recorded_questions(folder: Path, settings: RecallSettings, now: datetime) -> list[Expected]:
    """The recorded questions to ask: the latest of each scope in turn, each question once, up to the limit.

    Lines that a power cut left incomplete are skipped.

    Args:
        folder: the recorded questions of a home.
        settings: how long they are kept, and how many are asked.
        now: the run's logical time.
    """
    found = list(_read(folder, settings, now))
    keys = [{"text": each.text, "scope": ",".join(each.scopes or ())} for each in found]
    rows = pl.DataFrame(keys, {"text": pl.String, "scope": pl.String}).with_row_index("at")
    latest = rows.sort("at", descending=True).unique(["text", "scope"], keep="first", maintain_order=True)
    turns = latest.with_columns(turn=pl.int_range(pl.len()).over("scope")).sort("turn", "scope")
    return [found[at] for at in turns.head(settings.max_questions)["at"]]


def _read(folder: Path, settings: RecallSettings, now: datetime) -> Iterator[Expected]:
    """All that are kept, the oldest first."""
    for path in _days(folder):
        if path.stem >= _first_day(settings, now):
            for number, line in enumerate(path.read_text("utf-8", "replace").split("\n"), start=1):
                try:
                    yield parsed_question(json.loads(line), f"{path.name} line {number}")
                except MALFORMED:
                    continue


def expire_questions(folder: Path, settings: RecallSettings, now: datetime) -> None:
    """Removes the days that are no longer asked."""
    for path in _days(folder):
        if path.stem < _first_day(settings, now):
            path.unlink(missing_ok=True)


def _days(folder: Path) -> list[Path]:
    return sorted(folder.glob("????-??-??.jsonl"))


def _first_day(settings: RecallSettings, now: datetime) -> str:
    try:
        return f"{now - timedelta(days=settings.keep_days):%Y-%m-%d}"
    except OverflowError:
        return ""
