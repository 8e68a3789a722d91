"""The entries of an answer, ready for JSON: candidates with their fields, evidence, and a few plain lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from memstate_core.model.text import iso
from memstate_core.retrieve.calibration import Calibration
from memstate_core.retrieve.facts.conflicts import plain
from memstate_core.retrieve.facts.facts import Facts
from memstate_core.retrieve.ranking import Ranked
from memstate_core.retrieve.scope_data import taken
from memstate_core.retrieve.search import Found

Entry = dict[str, Any]
_SUMMARY_TOPICS = 3
_SUMMARY_FIELDS = 6
_DETAILS = ("tool", "status", "path")
_DIGITS = 6
_OWN = ("title", "summary", "topic_kind", "scope", "state", "salience", "failed_salience")
_EVIDENCE = ("evidence_id", "observation_id", "text", "observed_at", "topic_id", "actor", "session_id", "kind")


def candidate_entry(ranked: Ranked, facts: Facts, neighbors: list[Entry], field_names: Collection[str]) -> Entry:
    """A topic as a candidate.

    Args:
        ranked: the topic.
        facts: its facts, among others.
        neighbors: its neighbours.
        field_names: include these fields only; all when empty.
    """
    topics, similarity = ranked.found.topics.columns, float(ranked.found.similarity[ranked.row])
    own = {name: topics[name][ranked.row] for name in _OWN}
    return (
        {"topic_id": ranked.id}
        | own
        | {
            "similarity": None if math.isnan(similarity) else round(similarity, _DIGITS),
            "neighbors": neighbors,
            "fields": _fields(facts, ranked.id, field_names),
            "warnings": [*facts.warnings.get(ranked.id, [])],
        }
    )


def topic_explained(ranked: Ranked, gain: float) -> Entry:
    """The parts of a topic's score; `gain` is what edges add to it."""
    parts = {name: part[ranked.row] for name, part in ranked.found.topic_parts.items()}
    return _explained(ranked.score, parts | {"structure": gain})


def _fields(facts: Facts, topic_id: str, names: Collection[str]) -> list[Entry]:
    return [
        {
            "name": name,
            "field_type": field["field_type"],
            "ref_topic_id": field["ref_topic_id"],
            "current": {**field["history"][0]},
            "conflict": [*field["conflict"]],
            "history": field["history"][1:],
        }
        for name, field in facts.fields.get(topic_id, {}).items()
        if not names or name in names
    ]


def evidence_entries(
    found: Sequence[Found], count: int, *, explain: bool, calibration: Calibration | None = None
) -> list[Entry]:
    """The best evidence of some scopes, best first; ties by id.

    Args:
        found: what each scope has.
        count: how much evidence to return.
        explain: add the parts of each score.
        calibration: adds the calibrated score of each, as `relevance`, and the `scope` of those whose id several have.
    """
    entries = [(*entry, each) for each in found for entry in _scope_evidence(each, explain=explain)]
    best = sorted(entries, key=itemgetter(0, 1))[:count]
    if calibration is None:
        return [entry for _, _, entry, _ in best]
    times = Counter(entry["observation_id"] for _, _, entry, _ in best)
    return [
        entry
        | {"relevance": calibration(-lost)}
        | ({"scope": of.evidence.frame["scope"][0]} if times[entry["observation_id"]] > 1 else {})
        for lost, _, entry, of in best
    ]


def _scope_evidence(found: Found, *, explain: bool) -> Iterator[tuple[float, str, Entry]]:
    """The evidence of one scope, each piece with what it is sorted by."""
    rows = taken([found.evidence.frame[name] for name in (*_EVIDENCE, *_DETAILS)], found.rows)
    for place, (evidence_id, name, text, observed, topic, actor, session, kind, *details) in enumerate(rows):
        score, newer = float(found.evidence_scores[place]), found.replaced_by[place]
        entry = {
            "observation_id": name,
            "text": text,
            "observed_at": None if observed is None else iso(observed),
            "topic_id": topic,
            "score": round(score, _DIGITS),
            "actor": actor,
            "session_id": session,
            "kind": kind,
        }
        entry |= {key: value for key, value in zip(_DETAILS, details, strict=True) if value}
        entry |= {"replaced_by": newer} if newer else {}
        if explain:
            entry |= _explained(score, {name: part[place] for name, part in found.evidence_parts.items()})
        yield -score, evidence_id, entry


def _explained(score: float, parts: Mapping[str, float]) -> Entry:
    shown = {name: round(float(value), _DIGITS) for name, value in parts.items()}
    return {"explain": {"score": round(score, _DIGITS), "parts": shown}}


def summary_text(candidates: list[Entry]) -> str:
    """The first candidates with their current fields, one plain line each."""
    return "\n".join(_line(entry) for entry in candidates[:_SUMMARY_TOPICS]) or "No topic is known here."


def _line(entry: Entry) -> str:
    shown = [f"{field['name']}: {_shown(field)}" for field in entry["fields"][:_SUMMARY_FIELDS]]
    kind = f" ({entry['topic_kind']})" if entry["topic_kind"] else ""
    return f"{entry['title']}{kind}: {'; '.join(shown) or entry['summary'] or 'nothing recorded'}"


def _shown(field: Entry) -> str:
    others = ", ".join(plain(other["value"]) for other in field["conflict"])
    return plain(field["current"]["value"]) + (f" (in conflict with {others})" if others else "")
