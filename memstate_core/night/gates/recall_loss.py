"""What questions lose in a night: each is put to what is served and to the draft of the run, before it is published.

The other shards answer as they are served, but not where a night leaves them at the URL (`store.checkout_mib`).
The mean is over scopes, of the mean over the questions of each, so that no scope moves it by more than its share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from memstate_core.model.errors import MemstateError
from memstate_core.model.step_frames import ALIASES
from memstate_core.night.checkout.shards_here import is_bounded
from memstate_core.night.publish import draft
from memstate_core.retrieve.evaluation.recall import Expected, read_questions
from memstate_core.retrieve.evaluation.recorded_questions import recorded_questions
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader, served_model
from memstate_core.run.run import Run
from memstate_core.run.store import Store, with_model
from memstate_core.state.current import served_where_sound
from memstate_core.state.fold.identity import answering, survivors
from memstate_core.state.graph import TOPIC
from memstate_core.state.snapshots import Snapshot

_TOPIC, _OBSERVATION = "topic", "observation"
_ITEM = {"place": pl.String, "scope": pl.String, "kind": pl.String, "id": pl.String}
_SHOWN = 5
_FATES = {
    "gone": "is gone (evidence, placements)",
    "archived": "was archived (forgetting)",
    "merged": "was merged (merges)",
    "active": "ranks lower (topics, topic_embeddings)",
}
"""What became of something that is no longer found, and the steps that did it."""


@dataclass(frozen=True)
class RecallLoss:
    """What questions find in what is served and in the draft of a run.

    Attributes:
        questions: how many were asked.
        before: the recall of what is served, in per cent.
        after: that of the draft.
        lost: what is no longer found, a clause each, by the place of its question.
        problem: why nothing could be measured, if so.
    """

    questions: int = 0
    before: float = 0.0
    after: float = 0.0
    lost: Sequence[str] = ()
    problem: str | None = None

    @property
    def points(self) -> float:
        """The loss in percentage points."""
        return self.before - self.after

    def examples(self) -> str:
        """The first of what was lost, in a clause."""
        more = f" and {len(self.lost) - _SHOWN:,} more" * (len(self.lost) > _SHOWN)
        return f" ({'; '.join(self.lost[:_SHOWN])}{more})" if self.lost else ""


def recall_loss(store: Store, run: Run) -> RecallLoss:
    """Asks the questions of the settings and those recorded; what keeps it from that is noted in the result."""
    if store.settings.gates.recall == "off" or run.facts.base is None:
        return RecallLoss()
    try:
        given, recorded = kept_questions(store, run.facts.now)
        questions = [each for each in (*given, *recorded) if _is_of(each, store, run)]
        return _compared(store, run, questions) if questions else RecallLoss()
    except (MemstateError, OSError, ValueError) as error:
        return RecallLoss(problem=str(error))


def kept_questions(store: Store, now: datetime) -> tuple[list[Expected], list[Expected]]:
    """The questions of the settings, and those recorded, whose answers were those of the model served then.

    Args:
        store: the store.
        now: the logical time, from which the ages of recorded ones count.

    Raises:
        ValueError: a line of the file of the settings is no question.
        OSError: it cannot be read.
    """
    settings = store.settings.recall
    given = read_questions(store.home.root / settings.questions) if settings.questions else []
    return given, recorded_questions(store.home.recorded_questions, settings, now)


def _is_of(expected: Expected, store: Store, run: Run) -> bool:
    """Whether the run's shard may hold what a question is about."""
    layout = store.layout
    return expected.scopes is None or any(layout.of(scope) == run.facts.shard for scope in expected.scopes)


def _asked_shards(store: Store, shard: str) -> list[str]:
    """The shards whose snapshots answer the questions of the night of a shard."""
    return [shard] if is_bounded(store) else store.shards


def _compared(store: Store, run: Run, questions: Sequence[Expected]) -> RecallLoss:
    served, _ = served_where_sound(store.home, _asked_shards(store, run.facts.shard))
    others = [each for each in served if each.manifest.shard != run.facts.shard]
    with ExitStack() as stack:

        def opened(snapshots: Sequence[Snapshot]) -> list[SnapshotReader]:
            return [stack.enter_context(SnapshotReader(snapshot)) for snapshot in snapshots]

        expected = pl.DataFrame([row for each in questions for row in _expected(each)], _ITEM, orient="row")
        before = _found(store, run, opened(served), questions, expected)
        draft_and_others = opened([*others, draft(store, run)])
        after = _found(store, run, draft_and_others, questions, expected)
        both = expected.with_columns(before=before, after=after)
        lost = both.filter(pl.col("before") & ~pl.col("after"))
        return RecallLoss(len(questions), *_means(both), _fates(draft_and_others, lost))


def _expected(question: Expected) -> Iterator[tuple[str, str, str, str]]:
    scope = ",".join(question.scopes or ())
    yield from ((question.place, scope, _TOPIC, one) for one in sorted(question.topics))
    yield from ((question.place, scope, _OBSERVATION, one) for one in sorted(question.observations))


def _found(
    store: Store, run: Run, readers: Sequence[SnapshotReader], questions: Sequence[Expected], expected: pl.DataFrame
) -> pl.Series:
    """Whether each expected item is in the answer to its question."""
    encoder = with_model(store, served_model(readers)).encoder
    named: list[tuple[str, str, str]] = []
    for each in questions:
        asked = Question(each.text, each.scopes, asked_at=each.asked_at or run.facts.now)
        given = answer(readers, encoder, store.home.cache, asked)
        named += [(each.place, _TOPIC, one["topic_id"]) for one in given["candidates"]]
        named += [(each.place, _OBSERVATION, one["observation_id"]) for one in given["evidence"]]
    rows = pl.DataFrame(named, {"place": pl.String, "kind": pl.String, "id": pl.String}, orient="row").unique()
    living = expected.with_columns(id=_living(readers, expected["id"]))
    joined = living.join(rows.with_columns(found=True), on=["place", "kind", "id"], how="left", maintain_order="left")
    return joined["found"].fill_null(False)


def _living(readers: Sequence[SnapshotReader], ids: pl.Series) -> pl.Series:
    """Each id, or that of the topic that it resolves to."""
    merged = pl.concat([each.graph.read(TOPIC, ["id", "merged_into"], "r.state = 'merged'") for each in readers])
    aliases = pl.concat([each.aliases.select(ALIASES.keys()) for each in readers])
    followed = survivors(merged.select(dropped="id", survivor="merged_into"))
    return pl.DataFrame({"id": ids}).select(answering(pl.col("id"), aliases, followed)).to_series()


def _means(both: pl.DataFrame) -> tuple[float, float]:
    """The recall before and after, in per cent: the mean over scopes of that over their questions."""
    sides = [pl.col(name).mean() for name in ("before", "after")]
    scopes = both.group_by("scope", "place").agg(sides).group_by("scope").agg(sides)
    before, after = scopes.select(sides).row(0)
    return 100.0 * before, 100.0 * after


def _fates(readers: Sequence[SnapshotReader], lost: pl.DataFrame) -> list[str]:
    """What became of each lost item, a clause each."""
    states = pl.concat([each.graph.read(TOPIC, ["id", "state"]) for each in readers]).unique("id")
    said = pl.concat([each.all_evidence().select("observation_id", "topic_id").collect() for each in readers])
    placed = said.unique("observation_id").select(id="observation_id", kind=pl.lit(_OBSERVATION), topic="topic_id")
    topics = lost.join(placed, on=["id", "kind"], how="left", maintain_order="left")
    topics = topics.with_columns(topic=pl.when(pl.col("kind") == _TOPIC).then("id").otherwise("topic"))
    known = topics.join(states, left_on="topic", right_on="id", how="left", maintain_order="left")
    fate = pl.col("state").fill_null("gone").replace_strict(_FATES)
    return known.select(pl.format("{}: {} {} {}", "place", "kind", "id", fate)).to_series().to_list()
