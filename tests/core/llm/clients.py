"""An client of a scripted server, with a clock that only sleeping moves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memstate_core.llm.answer_cache import AnswerCache
from memstate_core.llm.endpoint import Endpoint
from memstate_core.llm.model_client import ModelClient, Time
from memstate_core.model.text import parse_moment
from memstate_core.policy.sections.extractor import ExtractorSettings

QUESTION = [{"role": "system", "content": "do"}, {"role": "user", "content": "this"}]
SCOPE = "user:a"
KEY = "sk-very-secret-0123456789"


class SleptTime:
    """A clock that sleeping moves.

    Attributes:
        slept: how long each sleep was, in seconds.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._now = parse_moment("2026-01-01T00:00:00Z")

    def time(self) -> Time:
        return Time(lambda: self._now, self._sleep)

    def now(self) -> datetime:
        return self._now

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += timedelta(seconds=seconds)


@contextmanager
def client_of(url: str, folder: Path, clock: SleptTime | None = None, **settings: Any) -> Iterator[ModelClient]:
    """An client with a cache in a folder."""
    rules = ExtractorSettings(base_url=url, model="m", **settings)
    with (
        closing(AnswerCache(folder / "answers.sqlite")) as answers,
        closing(Endpoint(rules, {"SOME_KEY": KEY})) as endpoint,
    ):
        yield ModelClient(endpoint, answers, rules, (clock or SleptTime()).time())
