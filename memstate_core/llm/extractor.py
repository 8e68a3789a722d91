"""Extracts and places the topics of a run's new turns with a language model; the rest is placed without it.

Sessions are read in waves (`memstate_core.llm.wave`), and scopes take turns with their requests
(`memstate_core.llm.fair_queue`), so that none uses up the budget of the run while another has requests to send.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from memstate_core.ingest.validation.quarantine import Refusal
from memstate_core.llm.known_topics import KnownTopics
from memstate_core.llm.model_client import ModelClient
from memstate_core.llm.sandbox import Sandbox
from memstate_core.llm.segment_rows import Placed, linked, segments
from memstate_core.llm.sessions import Session, in_sessions, readable, sessions
from memstate_core.llm.wave import Waves
from memstate_core.model.evidence import spoken
from memstate_core.model.frames import empty
from memstate_core.model.step_frames import SEGMENTS
from memstate_core.placement.segment_vectors import Embed, SegmentVectors
from memstate_core.policy.settings import Settings


@dataclass(frozen=True)
class Extracted:
    """The result of the extraction.

    Attributes:
        segments: columns SEGMENTS; turns in none of them remain to be placed without the model.
        refusals: objects of answers that failed validation, by the name of their session.
        failures: columns reason, sessions: why sessions were not or not completely extracted.
        counts: sessions, topics, turns, requests and tokens.
    """

    segments: pl.DataFrame
    refusals: list[tuple[str, list[Refusal]]]
    failures: pl.DataFrame
    counts: dict[str, int]


def extract(
    turns: pl.DataFrame,
    memory: KnownTopics,
    past: SegmentVectors,
    embed: Embed,
    client: ModelClient,
    settings: Settings,
) -> Extracted:
    """Extracts and places the topics of new turns.

    Args:
        turns: evidence that names no topic and was not placed before (columns EVIDENCE).
        memory: the existing topics; the extracted ones are added.
        past: segments of earlier runs, on which the probability of continuation is calibrated by scope.
        embed: gives unit vectors for texts.
        client: the model.
        settings: of the extractor, of segments, and of placement.
    """
    ordered = in_sessions(turns.filter(readable()))
    vectors = embed(ordered.select(spoken()).to_series().to_list())
    found = sessions(ordered, vectors, settings.segment) if ordered.height else []
    done = _in_waves(found, memory, past, client, settings)
    sandboxes, rows, lost = [], [empty(SEGMENTS)], 0
    for sandbox, placed in done:
        names, nowhere = linked(sandbox, placed)
        rows.append(segments(sandbox, placed, names))
        sandboxes.append(sandbox)
        lost += nowhere
    made = pl.concat(rows)
    refusals = [(sandbox.session.name, sandbox.refusals) for sandbox in sandboxes if sandbox.refusals]
    counts = _counts(turns, sandboxes, made, client) | {"llm_links_refused": lost}
    return Extracted(made, refusals, _failures(sandboxes), counts)


def _in_waves(
    found: list[Session], memory: KnownTopics, past: SegmentVectors, client: ModelClient, settings: Settings
) -> list[tuple[Sandbox, list[Placed]]]:
    with ThreadPoolExecutor(settings.extractor.concurrency) as pool:
        waves = Waves(memory, past, client, settings, pool)
        try:
            return waves.read(found)
        except BaseException:
            client.stop("the run was interrupted")  # else the pool would wait for answers that are not read
            raise


def _counts(turns: pl.DataFrame, sandboxes: list[Sandbox], made: pl.DataFrame, client: ModelClient) -> dict[str, int]:
    understood = int(made["evidence_ids"].list.len().sum())
    return {
        "llm_sessions": len(sandboxes),
        "llm_sessions_failed": sum(bool(sandbox.failures) for sandbox in sandboxes),
        "llm_topics": sum(len(sandbox.topics) for sandbox in sandboxes),
        "llm_turns": understood,
        "llm_turns_left": turns.height - understood,
        "llm_requests": client.budget.requests,
        "llm_tokens": client.budget.tokens,
        "llm_cached": client.cached,
        "llm_refused": sum(len(sandbox.refusals) for sandbox in sandboxes),
    }


def _failures(sandboxes: list[Sandbox]) -> pl.DataFrame:
    reasons = Counter(reason for sandbox in sandboxes for reason in dict.fromkeys(sandbox.failures))
    schema = {"reason": pl.String, "sessions": pl.Int64}
    return pl.DataFrame(sorted(reasons.items()), schema=schema, orient="row")
