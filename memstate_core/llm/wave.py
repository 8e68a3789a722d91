"""A wave of sessions: extracted concurrently, then placed among the topics that were known before the wave."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.llm.integration import Choice, chosen_at_once, integrate
from memstate_core.llm.known_topics import CARDS, KnownTopics
from memstate_core.llm.model_client import ModelClient
from memstate_core.llm.sandbox import Sandbox, is_long, study
from memstate_core.llm.segment_rows import Placed, own_id
from memstate_core.llm.sessions import Session
from memstate_core.placement.continuation import continued
from memstate_core.placement.segment_vectors import COMPARED, SegmentVectors, segment_vectors
from memstate_core.placement.vectors import centroids
from memstate_core.policy.settings import Settings

Choices = dict[int, Choice]


class Waves:
    """Processes the waves of a run."""

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

    def take(self, wave: Sequence[Session]) -> list[tuple[Sandbox, list[Placed]]]:
        """Extracts the topics of sessions and places them; they are known topics for the next wave."""
        asked_before = self._client.budget.requests
        sandboxes = list(self._pool.map(self._study, wave))
        vectors = [_vectors(sandbox) for sandbox in sandboxes]
        for sandbox, own in zip(sandboxes, vectors, strict=True):
            if sandbox.long:
                sandbox.cards = self._memory.nearest(sandbox.session.scope, own, self._rules.known_topics)
        second = any(sandbox.long and sandbox.cards for sandbox in sandboxes)
        if second and self._client.budget.requests > asked_before:
            self._client.pause(self._rules.phase_delay_seconds)
        choices = list(self._pool.map(self._choices, sandboxes))
        placed = self._placed(sandboxes, choices)
        for each in zip(sandboxes, placed, vectors, strict=True):
            self._remember(*each)
        return list(zip(sandboxes, placed, strict=True))

    def _study(self, session: Session) -> Sandbox:
        limit = 0 if is_long(session, self._rules) else self._rules.known_topics
        cards = self._memory.nearest(session.scope, session.subjects, limit)
        return study(self._client, session, cards, self._rules, self._longest)

    def _choices(self, sandbox: Sandbox) -> Choices:
        if not sandbox.long:
            return chosen_at_once(sandbox)
        return integrate(self._client, sandbox, self._rules.max_rounds) if sandbox.cards else {}

    def _placed(self, sandboxes: list[Sandbox], choices: list[Choices]) -> list[list[Placed]]:
        """The placement of each topic: the model's choice, else the topic that it continues by similarity, else new."""
        alike = self._alike(sandboxes, _unchosen(sandboxes, choices))

        def place(sandbox: Sandbox, at: int, chosen: Choices) -> Placed:
            topic = sandbox.topics[at]
            if at in chosen:
                return Placed.chosen(chosen[at].card.topic_id, chosen[at].reason(), not sandbox.long)
            return alike.get(own_id(sandbox.session, topic)) or Placed.own(sandbox.session, topic)

        return [
            [place(sandbox, at, chosen) for at in range(len(sandbox.topics))]
            for sandbox, chosen in zip(sandboxes, choices, strict=True)
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


def _vectors(sandbox: Sandbox) -> Vectors:
    """The centroid of the turns of each topic (float32, n x 384)."""
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
        return SegmentVectors.empty()
    rows = [(own_id(session, topic), session.scope, f"wave/{number}", True) for number, session, topic in free]
    groups = [at for at, (_, _, topic) in enumerate(free) for _ in topic.turns]
    vectors = np.concatenate([session.vectors[topic.turns] for _, session, topic in free])
    frame = pl.DataFrame(rows, schema=COMPARED, orient="row")
    return segment_vectors(frame, pl.Series("turns", groups, dtype=pl.Int64), vectors)


def _titles(sandboxes: list[Sandbox]) -> pl.DataFrame:
    rows = [(own_id(one.session, topic), topic.first.title) for one in sandboxes for topic in one.topics]
    return pl.DataFrame(rows, schema={"id": pl.String, "title": pl.String}, orient="row")
