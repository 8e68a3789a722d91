"""Context packs: the answer to a question as a few cited lines within a budget of tokens.

A pack is a function of an answer (`memstate_core.retrieve.query.answer`) and does not rank again. Its pieces have a
fixed order in which topics, evidence and further facts take turns, so that no topic crowds out the others. A pack is
the longest prefix of them that fits, so a larger budget only adds pieces. A warning is never separated from the piece
that it belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memstate_core.model.text import iso
from memstate_core.retrieve.conflicts import plain

Answer = dict[str, Any]
Pack = dict[str, Any]

TOPICS, EVIDENCE = 20, 60
"""How much of an answer a pack is built from; the budget decides how much of that is included."""

LONGEST = 400
"""Characters of a summary, a value or a turn that are shown; longer texts are cut, with an ellipsis."""

EVIDENCE_HEADING = "# Evidence"
WARNING = "  ! "
"""How the line of a warning begins."""
_NOT_SERVED = ("detached", "archived")


@dataclass(frozen=True)
class Piece:
    """A unit that a pack includes whole or not at all.

    Attributes:
        place: its position in the order of pieces: turn, then kind, then rank.
        kind: topic, evidence, summary or field.
        topic: the rank of its topic; None for evidence, which has a section of its own.
        text: its line, without the citation.
        warnings: `kind`, `message` and `field` of each.
        source: what its citation refers to.
    """

    place: tuple[int, int, int]
    kind: str
    topic: int | None
    text: str
    warnings: list[Answer]
    source: Answer


Numbered = tuple[int, Piece, list[str]]
"""A piece with its number and its lines."""

_ORDER = ("topic", "evidence", "summary", "field")
_READ = ("topic", "summary", "field", "evidence")
_PER_TURN = 2
"""How many fields of a topic, and pieces of evidence, one turn has."""


def context_pack(
    answer: Answer, budget: int, count: Callable[[str], int], *, counted_by: str, as_of: datetime | None = None
) -> Pack:
    """The pack of an answer.

    Args:
        answer: the result of `memstate_core.retrieve.query.answer`.
        budget: the most tokens that the text may have.
        count: counts the tokens of a line; a line break is one more.
        counted_by: the name of the tokenizer.
        as_of: the moment that the answer is about, if not the present.

    Returns:
        `text` with its `tokens` (never more than the budget), `citations` (by number `n`, the source of each
        line; a line keeps its number in every larger pack), `topics` (those in the text, best first), `warnings` (each
        with the number of its line), `left_out` (how many pieces of each kind the text lacks), ready for JSON.
    """
    pieces = sorted(_pieces(answer), key=lambda piece: piece.place)
    numbered = [(n, piece, _lines(n, piece)) for n, piece in enumerate(pieces, 1)]
    opening = [f"As of {iso(as_of)}, not of now:"] if as_of is not None else []
    kept, tokens = _fitting(numbered, opening, budget, count)
    left = Counter(piece.kind for piece in pieces) - Counter(piece.kind for _, piece, _ in kept)
    return {
        "query": answer["query"],
        "budget": budget,
        "tokens": tokens,
        "counted_by": counted_by,
        "text": "\n".join(_text(kept, opening)),
        "citations": [{"n": n, "kind": piece.kind} | piece.source for n, piece, _ in kept],
        "topics": [piece.source["topic_id"] for _, piece, _ in kept if piece.kind == "topic"],
        "warnings": [{"n": n} | warning for n, piece, _ in kept for warning in piece.warnings],
        "left_out": {kind: left[kind] for kind in _ORDER},
        "snapshot": answer["snapshot"],
    } | {name: answer[name] for name in ("missing_shards",) if name in answer}


def _fitting(
    numbered: list[Numbered], opening: list[str], budget: int, count: Callable[[str], int]
) -> tuple[list[Numbered], int]:
    """The longest prefix of pieces that fits, and its tokens; the first piece includes the cost of the opening."""
    kept: list[Numbered] = []
    tokens, due = -1, opening
    for n, piece, lines in numbered:
        heads_part = piece.kind == "evidence" and not any(other.kind == "evidence" for _, other, _ in kept)
        cost = sum(count(line) + 1 for line in [*due, *([EVIDENCE_HEADING] * heads_part), *lines])
        if tokens + cost > budget:
            break
        kept.append((n, piece, lines))
        tokens, due = tokens + cost, []
    return kept, max(0, tokens)


def _text(kept: list[Numbered], opening: list[str]) -> list[str]:
    """The text line by line: topic by topic, each with its summary and fields, then the evidence."""
    if not kept:
        return []
    reading = sorted(kept, key=lambda each: (each[1].topic is None, each[1].topic, _READ.index(each[1].kind), each[0]))
    topics = [line for _, piece, lines in reading if piece.topic is not None for line in lines]
    evidence = [line for _, piece, lines in reading if piece.topic is None for line in lines]
    return [*opening, *topics, *([EVIDENCE_HEADING] if evidence else []), *evidence]


def _lines(n: int, piece: Piece) -> list[str]:
    """The lines of a piece: its text with its number, then its warnings."""
    return [
        f"{piece.text} [{n}]",
        *(f"{WARNING}{each['kind']}: {one_line(each['message'])}" for each in piece.warnings),
    ]


def one_line(text: str, longest: int = LONGEST) -> str:
    """A text on one line, of printable characters, cut to a length."""
    words = " ".join("".join(c if c.isprintable() or c.isspace() else " " for c in text).split())
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"


def _pieces(answer: Answer) -> Iterator[Piece]:
    for rank, topic in enumerate(answer["candidates"]):
        yield from _topic_pieces(topic, rank)
    for rank, found in enumerate(answer["evidence"]):
        yield _evidence_piece(found, rank)


def _piece(
    kind: str, turn: int, rank: int, topic: int | None, text: str, warnings: list[Answer], source: Answer
) -> Piece:
    return Piece((turn, _ORDER.index(kind), rank), kind, topic, text, warnings, source)


def _topic_pieces(topic: Answer, rank: int) -> Iterator[Piece]:
    topic_id, fields = topic["topic_id"], topic["fields"]
    named = {field["name"] for field in fields}
    of_fields: dict[str, list[Answer]] = {}
    own: list[Answer] = _topic_warnings(topic)
    for warning in topic["warnings"]:
        at = of_fields.setdefault(warning["field"], []) if warning["field"] in named else own
        at.append({name: warning[name] for name in ("kind", "message", "field")})
    kind = f" ({one_line(topic['topic_kind'])})" if topic["topic_kind"] else ""
    title = one_line(topic["title"] or topic_id)
    source = {"topic_id": topic_id, "title": topic["title"], "scope": topic["scope"]}
    yield _piece("topic", rank, rank, rank, f"# {title}{kind}", own, source)
    if topic["summary"] and topic["summary"] != topic["title"]:
        yield _piece("summary", rank, rank, rank, one_line(topic["summary"]), [], {"topic_id": topic_id})
    for place, field in enumerate(fields):
        yield _field_piece(field, rank, rank + place // _PER_TURN, topic_id, of_fields.get(field["name"], []))


def _topic_warnings(topic: Answer) -> list[Answer]:
    """Warnings of a topic as a whole: superseded or contradicted by another one, detached or archived."""
    found = []
    if (state := topic.get("state")) in _NOT_SERVED:
        found.append(_warning(state, f"this topic has been {state}"))
    for neighbor in topic["neighbors"]:
        if neighbor["kind"] == "supersedes" and neighbor["direction"] == "in":
            found.append(_warning("superseded", f"superseded by {neighbor['title']} ({neighbor['topic_id']})"))
        if neighbor["kind"] == "contradicts":
            found.append(_warning("contradicted", f"contradiction with {neighbor['title']} ({neighbor['topic_id']})"))
    return found


def _warning(kind: str, message: str) -> Answer:
    return {"kind": kind, "message": message, "field": None}


def _field_piece(field: Answer, rank: int, turn: int, topic_id: str, warnings: list[Answer]) -> Piece:
    current = field["current"]
    since = f" (since {current['valid_from'][:10]})" if current["valid_from"] else ""
    text = f"- {one_line(field['name'])}: {one_line(plain(current['value']))}{since}"
    source = {
        "topic_id": topic_id,
        "field": field["name"],
        "revision_id": current["id"],
        "evidence_ids": current["evidence_ids"],
    }
    return _piece("field", turn, rank, rank, text, warnings, source)


def _evidence_piece(found: Answer, rank: int) -> Piece:
    speaker = f" {one_line(found['actor'])}" if found["actor"] else ""
    text = f"- {found['observed_at'][:10]}{speaker}: {one_line(found['text'] or '')}"
    source = {name: found[name] for name in ("observation_id", "topic_id", "observed_at")}
    later = found.get("replaced_by")
    warnings = [_warning("replaced", f"a later statement may have replaced it ({later})")] if later else []
    return _piece("evidence", rank // _PER_TURN, rank, None, text, warnings, source)
