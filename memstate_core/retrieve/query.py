"""Answers a question from published snapshots. Reads only; records no access.

The caller names the scopes. `scopes=None` means every scope of the store and is for its owner at the
command line; a server passes the scopes of its caller. Each scope is scored by its own statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.vector_cache import embed_questions
from memstate_core.model.errors import SnapshotDamaged
from memstate_core.model.terms import question_terms
from memstate_core.retrieve.calibration import Calibration
from memstate_core.retrieve.candidate_facts import candidate_edges, candidate_facts
from memstate_core.retrieve.entries import candidate_entry, evidence_entries, summary_text, topic_explained
from memstate_core.retrieve.question.present import asks_for_the_present, in_first_person, without_question_words
from memstate_core.retrieve.ranking import Ranked, Ranking, best_first
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.routing import APART, AUTO, ROUTES, Policy, Route
from memstate_core.retrieve.scope_facts import Edge
from memstate_core.retrieve.scoring import PreparedQuestion
from memstate_core.retrieve.search import search_scope
from memstate_core.retrieve.turns.speaker_names import without_names
from memstate_core.retrieve.views.core_blocks import core_blocks
from memstate_core.retrieve.views.sessions import active_sessions
from memstate_core.retrieve.views.topic import resolve
from memstate_core.state.damaged_shards import DamagedShards

NEIGHBORS = 16
"""The most neighbours listed for a candidate."""

Watch = Callable[[str], AbstractContextManager[object]]
"""A context that is entered around each part of the work: `embed`, `rank` and `describe`."""

STAGES = frozenset({"semantic", "structural", "temporal"})


@dataclass(frozen=True)
class Question:
    """A question and its options.

    Attributes:
        text: the question.
        scopes: the scopes to search (`type:id`); None means every scope of the store.
        top_k: how many topics to return.
        evidence_k: how much evidence to return.
        stages: what counts beside the words: `semantic` compares embeddings (the only stage that needs the
            model), `structural` follows edges, `temporal` uses dates in the question: ISO dates in any
            language, names of months and relative dates in English and in most languages with locale data.
        explain: return the parts of each score.
        as_of: answer as of this moment (`memstate_core.retrieve.past`).
        topic_ids: consider these topics of the scopes only (ids, aliases or tombstones); all when empty.
        field_names: return these fields only; all when empty.
        history: return older revisions too.
        policy: what a context pack of the answer reads (`memstate_core.retrieve.routing`); None if there is to be none.
            Core blocks and sessions are those of the scopes; of those of the topics found if none is named. Session
            states are not among the topics returned.
        evidence_kinds: return evidence of these kinds only; all when empty.
        tool: return evidence whose details name this tool only.
        status: return evidence whose details have this status only.
        path: return evidence whose details have this path, or one below it, only.
        asked_at: the time of asking, to which relative dates refer; `as_of` takes its place where given.
    """

    text: str
    scopes: tuple[str, ...] | None = None
    top_k: int = 8
    evidence_k: int = 10
    stages: frozenset[str] = STAGES
    explain: bool = False
    as_of: datetime | None = None
    topic_ids: tuple[str, ...] = ()
    field_names: tuple[str, ...] = ()
    history: bool = False
    policy: Policy | None = None
    evidence_kinds: tuple[str, ...] = ()
    tool: str | None = None
    status: str | None = None
    path: str | None = None
    asked_at: datetime | None = None


@dataclass(frozen=True)
class _Part:
    """What one snapshot contributes: its ranked topics, the best of them, and their edges."""

    reader: SnapshotReader
    scopes: list[str]
    ranking: Ranking
    best: list[Ranked]
    edges: list[Edge]


def answer(
    readers: Sequence[SnapshotReader],
    encoder: Encoder,
    cache: Path | None,
    question: Question,
    watch: Watch = nullcontext,
    damaged: DamagedShards = DamagedShards(),  # noqa: B008 (immutable)
) -> dict[str, Any]:
    """Answers a question from the open snapshots of a store's shards.

    Args:
        readers: the snapshots.
        encoder: the model by which topics and evidence were embedded.
        cache: the embedding cache, or None to leave the question out of it.
        question: what is asked.
        watch: a context for each part of the work.
        damaged: the shards that could not be opened. A snapshot that turns out to be damaged joins them.

    Returns:
        The answer of `POST /v1/query`, ready for JSON. For a context pack it has core blocks and sessions as well, and
        the calibrated score of each topic and piece of evidence (`relevance`). `missing_shards` names the damaged
        shards that hold some of the question's scopes.

    Raises:
        TopicNotFound: one of `topic_ids` is unknown in these scopes, or was unknown at that moment.
        ModelUnavailable: the model cannot be loaded.
        SnapshotDamaged: every shard of the question's scopes is damaged, or one that may hold one of `topic_ids`.
    """
    damaged.require_any(question.scopes, [reader.snapshot.manifest.shard for reader in readers])
    try:
        if not _route(question).search:
            return _unsearched(readers, question, watch) | damaged.note(question.scopes)
        with watch("embed"):
            asked = _asked(readers, encoder, cache, question)
        return _answer(readers, asked, question, watch, damaged) | damaged.note(question.scopes)
    except SnapshotDamaged as error:
        sound = [reader for reader in readers if reader.name != error.facts["snapshot"]]
        if len(sound) == len(readers):
            raise
        return answer(sound, encoder, cache, question, watch, damaged.plus(error))


def _answer(
    readers: Sequence[SnapshotReader],
    asked: PreparedQuestion,
    question: Question,
    watch: Watch,
    damaged: DamagedShards,
) -> dict[str, Any]:
    with watch("rank"):
        only = sorted({_resolved(readers, topic_id, question, damaged) for topic_id in question.topic_ids})
        ranked = [part for reader in readers if (part := _rank(reader, asked, question, only)) is not None]
    with watch("describe"):
        candidates, evidence = _candidates(ranked, question), _evidence(ranked, question)
        core = _core(readers, question, _scopes_found(ranked, question, only, candidates))
    return {
        "query": question.text,
        "candidates": candidates,
        "evidence": evidence,
        "summary_text": summary_text(candidates),
        "snapshot": ",".join(reader.name for reader in readers),
    } | core


def _scopes_found(
    parts: list[_Part], question: Question, only: list[str], candidates: list[dict[str, Any]]
) -> set[str]:
    """The scopes of the topics that are nearest to the question, sessions among them; for a pack of no named scope."""
    if question.policy is None or question.scopes is not None:
        return set()
    kind = _route(question).topic_kind
    near = best_first(each for part in parts for each in Ranking(part.ranking.found, only, kind).best(question.top_k))[
        : question.top_k
    ]
    named = {each.found.topics.columns["scope"][each.row] for each in near}
    return named | {candidate["scope"] for candidate in candidates}


def evidence_filter(question: Question) -> pl.Expr | None:
    """Which evidence a question asks for, over columns kind, tool, status and path and never null; None for all."""
    wanted = [pl.col("kind").is_in(question.evidence_kinds)] if question.evidence_kinds else []
    wanted += [pl.col(name) == given for name in ("tool", "status") if (given := getattr(question, name)) is not None]
    if question.path is not None:
        below = question.path.rstrip("/") + "/"
        wanted.append((pl.col("path") == question.path) | pl.col("path").str.starts_with(below))
    return pl.all_horizontal(wanted).fill_null(False) if wanted else None


def _route(question: Question) -> Route:
    return ROUTES[question.policy or AUTO]


def _unsearched(readers: Sequence[SnapshotReader], question: Question, watch: Watch) -> dict[str, Any]:
    """Core blocks and sessions only; of all scopes if none is named."""
    with watch("describe"):
        everywhere = {scope for reader in readers for scope in reader.scopes}
        return empty_answer(readers, question) | _core(readers, question, everywhere)


def _core(readers: Sequence[SnapshotReader], question: Question, otherwise: Collection[str]) -> dict[str, Any]:
    """Core blocks and active sessions of the scopes of the question, or of other ones if it names none."""
    if question.policy is None:
        return {}
    scopes = otherwise if question.scopes is None else question.scopes
    sessions = active_sessions(readers, scopes, question.as_of) if _route(question).sessions else []
    return {"core_blocks": core_blocks(readers, scopes, question.as_of), "sessions": sessions}


def empty_answer(readers: Sequence[SnapshotReader], question: Question) -> dict[str, Any]:
    """The answer to a question about topics that no snapshot has."""
    snapshot = ",".join(reader.name for reader in readers)
    return {
        "query": question.text,
        "candidates": [],
        "evidence": [],
        "summary_text": summary_text([]),
        "snapshot": snapshot,
    }


def _resolved(readers: Sequence[SnapshotReader], topic_id: str, question: Question, damaged: DamagedShards) -> str:
    """The topic that an id refers to, or referred to as of the question's moment."""
    found = resolve(readers, topic_id, question.scopes, damaged)
    topic, scope = found.topic.row(0, named=True)["id"], found.topic["scope"][0]
    if question.as_of is None:
        return str(topic)
    return found.reader.past(scope, question.as_of).resolve(topic_id, found.reader.name)[-1]


def _asked(
    readers: Sequence[SnapshotReader], encoder: Encoder, cache: Path | None, question: Question
) -> PreparedQuestion:
    terms = question_terms(question.text)
    slices = [reader.evidence(scope) for reader in readers for scope in _scopes(reader, question)]
    present = asks_for_the_present(question.text, sorted({year for evidence in slices for year in evidence.years}))
    whole = unnamed = None
    if "semantic" in question.stages:
        speakers = {word for evidence in slices for word in evidence.names.in_question(terms)}
        spoken = in_first_person if present else without_names
        texts = list(dict.fromkeys([question.text, spoken(question.text, speakers)]))
        vectors = (
            encoder.encode(encoder.questions(texts))
            if cache is None
            else embed_questions(cache, encoder, texts).vectors
        )
        whole, unnamed = vectors[0], vectors[-1]
    said = without_question_words(terms) if present else terms
    at, dated = question.as_of or question.asked_at, "temporal" in question.stages
    return PreparedQuestion(question.text, terms, said, whole, unnamed, dated, present, at, encoder.model)


def _scopes(reader: SnapshotReader, question: Question) -> list[str]:
    return [scope for scope in reader.scopes if question.scopes is None or scope in question.scopes]


def _rank(reader: SnapshotReader, asked: PreparedQuestion, question: Question, only: list[str]) -> _Part | None:
    """Scores the scopes of the question that this snapshot has; None if it has none of them."""
    scopes = _scopes(reader, question)
    if not scopes:
        return None
    if reader.snapshot.manifest.embedding_model != asked.model:  # while shards change to another model one by one
        asked = replace(asked, vector=None, unnamed=None)
    wanted, kind = evidence_filter(question), _route(question).topic_kind
    found = [
        search_scope(
            reader,
            scope,
            asked,
            evidence_k=question.evidence_k if kind is None else 0,
            as_of=question.as_of,
            topic_ids=only,
            only=wanted,
        )
        for scope in scopes
    ]
    ranking = Ranking(found, only, kind, apart=None if question.policy is None else APART)
    best = ranking.best(question.top_k)
    named = bool(question.topic_ids)
    edges = candidate_edges(reader, scopes, [each.id for each in best], as_of=question.as_of, explicit=named)
    if "structural" in question.stages and edges:
        ranking.boost(best, edges)
        seen, best = {each.id for each in best}, ranking.best(question.top_k)
        newcomers = [each.id for each in best if each.id not in seen]
        if newcomers:
            further = candidate_edges(reader, scopes, newcomers, as_of=question.as_of, explicit=named)
            edges = list(dict.fromkeys([*edges, *further]))
    return _Part(reader, scopes, ranking, best, edges)


def _candidates(parts: list[_Part], question: Question) -> list[dict[str, Any]]:
    """The best topics of all snapshots, described by the snapshot that holds each."""
    chosen = best_first(each for part in parts for each in part.best)[: question.top_k]
    ids = {each.id for each in chosen}
    entries: dict[str, dict[str, Any]] = {}
    calibration = Calibration(found.topic_moments for part in parts for found in part.ranking.found)
    for part in parts:
        mine = [each for each in part.best if each.id in ids]
        if mine:
            facts = candidate_facts(
                part.reader,
                part.scopes,
                [each.id for each in mine],
                history=question.history,
                as_of=question.as_of,
                explicit=bool(question.topic_ids or question.field_names),
            )
            neighbors = part.ranking.neighbors(ids, part.edges, NEIGHBORS)
            for each in mine:
                entries[each.id] = candidate_entry(each, facts, neighbors.get(each.id, []), question.field_names)
                if question.policy is not None:
                    entries[each.id]["relevance"] = calibration(each.score)
                if question.explain:
                    entries[each.id] |= topic_explained(each, part.ranking.gain(each.id))
    return [entries[each.id] for each in chosen]


def _evidence(parts: list[_Part], question: Question) -> list[dict[str, Any]]:
    found = [found for part in parts for found in part.ranking.found]
    scale = None if question.policy is None else Calibration(each.evidence_moments for each in found)
    return evidence_entries(found, question.evidence_k, explain=question.explain, calibration=scale)
