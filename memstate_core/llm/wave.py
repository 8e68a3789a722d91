"""Reads the sessions of each scope in waves: extracted concurrently, then placed among the topics known before.

Sessions of one wave do not see each other's topics, those of later waves of the scope do, the nearest ones. A topic
that has the title of another and states a field of the same name is that topic, seen or not. So the requests for a
session depend on the sessions of its scope before it, and neither on other scopes nor on `concurrency`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.llm.fair_queue import Dialogue, Requests, next_turn
from memstate_core.llm.integration import Choices, chosen_at_once, integrate
from memstate_core.llm.known_topics import CARDS, KnownTopics, Stated
from memstate_core.llm.model_client import ModelClient
from memstate_core.llm.sandbox import Sandbox, SandboxTopic, is_long, normal, study
from memstate_core.llm.schema import PLACEMENTS
from memstate_core.llm.segment_rows import Placed, own_id
from memstate_core.llm.sessions import Session
from memstate_core.model.progress import Progress, report_progress
from memstate_core.placement.continuation import continued
from memstate_core.placement.segment_vectors import COMPARED, SegmentVectors, segment_vectors
from memstate_core.placement.vectors import centroids
from memstate_core.policy.settings import Settings

WAVE = 8


@dataclass
class _Reading:
    """A session of a wave, read by a dialogue with the model."""

    number: int
    sandbox: Sandbox
    choices: Choices
    dialogue: Dialogue


class Waves:
    """Reads the sessions of a run, those of each scope in waves of `WAVE`."""

    def __init__(
        self,
        memory: KnownTopics,
        past: SegmentVectors,
        client: ModelClient,
        settings: Settings,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._memory, self._past, self._client, self._pool = memory, past, client, pool
        self._rules, self._policy = settings.extractor, settings.policy
        self._longest = settings.ingest.max_line_mib << 20
        self._paused_after = 0

    def read(self, found: Sequence[Session]) -> list[tuple[Sandbox, list[Placed]]]:
        """Extracts the topics of sessions and places them.

        Topics of a wave are known topics for the next wave of their scope.
        """
        waiting: dict[str, deque[tuple[int, Session]]] = defaultdict(deque)
        for number, session in enumerate(found):
            waiting[session.scope].append((number, session))
        waves = {scope: self._begun(sessions) for scope, sessions in waiting.items()}
        done: dict[int, tuple[Sandbox, list[Placed]]] = {}
        while waves:
            self._send([dialogue for wave in waves.values() for dialogue in _ready(wave)])
            ended = [scope for scope, wave in waves.items() if not any(reading.dialogue.next for reading in wave)]
            done |= self._finished([reading for scope in ended for reading in waves.pop(scope)])
            waves |= {scope: self._begun(waiting[scope]) for scope in ended if waiting[scope]}
            report_progress(Progress("read sessions", len(done), len(found), "sessions"))
        return [done[number] for number in range(len(found))]

    def _begun(self, sessions: deque[tuple[int, Session]]) -> list[_Reading]:
        """The next wave of a scope's sessions."""
        return [self._reading(*sessions.popleft()) for _ in range(min(WAVE, len(sessions)))]

    def _reading(self, number: int, session: Session) -> _Reading:
        sandbox, choices = Sandbox(session, is_long(session, self._rules), []), Choices()
        return _Reading(number, sandbox, choices, Dialogue(session.scope, self._requests(sandbox, choices)))

    def _requests(self, sandbox: Sandbox, choices: Choices) -> Requests:
        """The requests for one session; the choices are filled at the end."""
        session, known = sandbox.session, self._rules.known_topics
        if not sandbox.long:
            sandbox.cards = self._memory.nearest(session.scope, session.subjects, known)
        yield from study(self._client, sandbox, self._rules, self._longest)
        if not sandbox.long:
            choices |= chosen_at_once(sandbox)
            return
        sandbox.cards = self._memory.nearest(session.scope, _vectors(sandbox), known)
        if sandbox.cards:
            choices |= yield from integrate(self._client, sandbox, self._rules.max_rounds)

    def _send(self, dialogues: Sequence[Dialogue]) -> None:
        """Sends the requests of one turn; before the second phase of a session, the endpoint's rate limit recovers."""
        turn, budget = next_turn(dialogues, self._client.budget.used), self._client.budget
        second = any(one.next is PLACEMENTS and one.asked is not PLACEMENTS for one in turn)
        if second and budget.requests > self._paused_after:
            self._client.pause(self._rules.phase_delay_seconds)
            self._paused_after = budget.requests
        list(self._pool.map(Dialogue.advance, turn))

    def _finished(self, readings: list[_Reading]) -> dict[int, tuple[Sandbox, list[Placed]]]:
        """Places the topics of sessions and remembers them."""
        if not readings:
            return {}
        sandboxes = [reading.sandbox for reading in readings]
        placed = self._placed(sandboxes, [reading.choices for reading in readings])
        for sandbox, places in zip(sandboxes, placed, strict=True):
            self._remember(sandbox, places, _vectors(sandbox))
        return {reading.number: (reading.sandbox, places) for reading, places in zip(readings, placed, strict=True)}

    def _placed(self, sandboxes: list[Sandbox], choices: list[Choices]) -> list[list[Placed]]:
        """The placement of each topic.

        It is the model's choice, else the topic of another session with the same title and field, else the topic that
        it continues by similarity, else new.
        """
        alike = self._alike(sandboxes, _unchosen(sandboxes, choices))
        stated: dict[Stated, tuple[int, str]] = {}

        def place(number: int, sandbox: Sandbox, at: int, chosen: Choices) -> Placed:
            topic = sandbox.topics[at]
            if at in chosen:
                return Placed.chosen(chosen[at].card.topic_id, chosen[at].reason(), not sandbox.long)
            names = _stated(sandbox, topic)
            here = (found[1] for name in names if (found := stated.get(name)) is not None and found[0] != number)
            same = next(here, None) or self._memory.stating(names)
            placed = (
                Placed.same(same, topic.first.title)
                if same
                else alike.get(own_id(sandbox.session, topic)) or Placed.own(sandbox.session, topic)
            )
            for name in names:
                stated.setdefault(name, (number, placed.topic_id))
            return placed

        return [
            [place(number, sandbox, at, chosen) for at in range(len(sandbox.topics))]
            for number, (sandbox, chosen) in enumerate(zip(sandboxes, choices, strict=True))
        ]

    def _alike(self, sandboxes: list[Sandbox], new: SegmentVectors) -> dict[str, Placed]:
        """The placements by similarity, by the id that a topic has if it is new.

        Topics of one session are never merged, since the model separated them.
        """
        found = continued(new, self._memory.topics, self._past, self._policy)
        titles = pl.concat([self._memory.titles, _titles(sandboxes)]).unique("id", keep="first")
        sessions = new.frame.select("id", "session")
        near = found.join(sessions, on="id").join(
            sessions.rename({"id": "topic_id"}), on="topic_id", how="left", suffix="_of_topic"
        )
        apart = near.filter(pl.col("session").ne_missing(pl.col("session_of_topic")))
        named = apart.join(titles.rename({"id": "topic_id"}), on="topic_id", how="left")
        rows = named.select("id", "topic_id", "title", "score", "probability").iter_rows()
        return {own: Placed.alike(*near) for own, *near in rows}

    def _remember(self, sandbox: Sandbox, placed: list[Placed], vectors: Vectors) -> None:
        """Adds the new topics of a session to the known ones."""
        new = [at for at, one in enumerate(placed) if one.new]
        firsts = [sandbox.topics[at].first for at in new]
        cards = {
            "id": [placed[at].topic_id for at in new],
            "title": [one.title for one in firsts],
            "summary": [one.summary for one in firsts],
            "fields": [[{"name": name, "value_json": value} for name, value, *_ in one.fields] for one in firsts],
        }
        self._memory.add(sandbox.session.scope, pl.DataFrame(cards, schema=CARDS), vectors[new])


def _ready(wave: list[_Reading]) -> list[Dialogue]:
    """The dialogues of a wave with a request to send; its second phases wait until all first phases have ended."""
    dialogues = [reading.dialogue for reading in wave if reading.dialogue.next]
    return [one for one in dialogues if one.next is not PLACEMENTS] or dialogues


def _vectors(sandbox: Sandbox) -> Vectors:
    """The centroid of the turns of each topic (float32, n x d)."""
    turns = [turn for topic in sandbox.topics for turn in topic.turns]
    groups = [at for at, topic in enumerate(sandbox.topics) for _ in topic.turns]
    return centroids(np.array(groups, dtype=np.int64), sandbox.session.vectors[turns], len(sandbox.topics))


def _unchosen(sandboxes: list[Sandbox], choices: list[Choices]) -> SegmentVectors:
    """The topics without a choice, each as one segment of its turns."""
    free = [
        (number, sandbox.session, topic)
        for number, (sandbox, chosen) in enumerate(zip(sandboxes, choices, strict=True))
        for at, topic in enumerate(sandbox.topics)
        if at not in chosen
    ]
    if not free:
        return SegmentVectors.empty(*{one.session.vectors.shape[1] for one in sandboxes})
    rows = [(own_id(session, topic), session.scope, f"wave/{number}", True) for number, session, topic in free]
    groups = [at for at, (_, _, topic) in enumerate(free) for _ in topic.turns]
    vectors = np.concatenate([session.vectors[topic.turns] for _, session, topic in free])
    frame = pl.DataFrame(rows, schema=COMPARED, orient="row")
    return segment_vectors(frame, pl.Series("turns", groups, dtype=pl.Int64), vectors)


def _stated(sandbox: Sandbox, topic: SandboxTopic) -> list[Stated]:
    """The scope and the title of a topic with each of the fields that it states."""
    scope, title = sandbox.session.scope, normal(topic.first.title)
    return [(scope, title, name) for part in topic.parts for name, *_ in part.fields]


def _titles(sandboxes: list[Sandbox]) -> pl.DataFrame:
    rows = [(own_id(one.session, topic), topic.first.title) for one in sandboxes for topic in one.topics]
    return pl.DataFrame(rows, schema={"id": pl.String, "title": pl.String}, orient="row")
