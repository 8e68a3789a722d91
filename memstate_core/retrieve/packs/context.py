"""Context packs: the answer to a question as a few cited lines within a budget of tokens.

A pack is a function of an answer (`memstate_core.retrieve.query.answer`) and does not rank again. Core blocks come
first, by authority, then active session states, each whole or not at all; those that do not fit are named. The other
pieces have a fixed order in which topics and resources, evidence and further facts take turns, so that no topic crowds
out another. They are the longest prefix that fits in what these leave, so a larger budget only adds pieces, unless it
makes room for a block or a session. A warning is never separated from the piece that it belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

from memstate_core.model.text import iso
from memstate_core.retrieve.packs.pack_pieces import (
    ORDER,
    Answer,
    Piece,
    answer_pieces,
    core_piece,
    one_line,
    session_piece,
)
from memstate_core.retrieve.routing import AUTO, Policy

Pack = dict[str, Any]

TOPICS, EVIDENCE = 20, 60
"""How much of an answer a pack is built from; the budget decides how much of that is included."""

CORE_HEADING, SESSION_HEADING = "# Core memory", "# Active sessions"
HEADINGS = {"resource": "# Resources", "evidence": "# Evidence"}
"""The headings of the sections after the topics, by the kind of their pieces."""
WARNING = "  ! "
"""How the line of a warning begins."""
Numbered = tuple[int, Piece, list[str]]
"""A piece with its number and its lines."""

_SECTIONS = {"core": -2, "session": -1, "resource": 1, "evidence": 2}
"""The order of the sections; topics with their summaries and fields are between them."""
_READ = ("core", "session", "topic", "summary", "field", "resource", "evidence")


def context_pack(
    answer: Answer,
    budget: int,
    count: Callable[[str], int],
    *,
    counted_by: str,
    policy: Policy = AUTO,
    as_of: datetime | None = None,
) -> Pack:
    """The pack of an answer.

    Args:
        answer: the result of `memstate_core.retrieve.query.answer`, with core blocks and sessions if it has any.
        budget: the most tokens that the text may have.
        count: counts the tokens of a line, or of a text; a line break is reckoned as one.
        counted_by: the name of the tokenizer.
        policy: the policy of the question that the answer is for.
        as_of: the moment that the answer is about, if not the present.

    Returns:
        `text` with its `tokens` (never more than the budget), `items` (its pieces in order, each with `kind`,
        `content`, `citation`, `score` and the `tokens` of its lines), `citations` (by number `n`, the source of each
        line; a line keeps its number in every larger pack), `topics` (those in the text, best first), `warnings` (each
        with the number of its line), `left_out` (how many pieces of each kind the text lacks), `core_left_out` and
        `session_left_out` (the core blocks and sessions among them, with the tokens of each), ready for JSON.
    """
    blocks = [core_piece(block, rank) for rank, block in enumerate(answer.get("core_blocks", ()))]
    sessions = [session_piece(session, rank) for rank, session in enumerate(answer.get("sessions", ()))]
    pieces = [*blocks, *sessions, *sorted(answer_pieces(answer), key=lambda piece: piece.place)]
    numbered = [(n, piece, _lines(n, piece)) for n, piece in enumerate(pieces, 1)]
    core, states = numbered[: len(blocks)], numbered[len(blocks) :][: len(sessions)]
    opening = [f"As of {iso(as_of)}, not of now:"] if as_of is not None else []
    kept, text, tokens = _within(core, states, numbered[len(core) + len(states) :], opening, budget, count)
    left = Counter(piece.kind for piece in pieces) - Counter(piece.kind for _, piece, _ in kept)
    return {
        "query": answer["query"],
        "policy": policy,
        "budget": budget,
        "tokens": tokens,
        "counted_by": counted_by,
        "text": text,
        "items": [_item(each, count) for each in _reading(kept)],
        "citations": [_citation(n, piece) for n, piece, _ in kept],
        "topics": [piece.source["topic_id"] for _, piece, _ in kept if piece.kind == "topic"],
        "warnings": [{"n": n} | warning for n, piece, _ in kept for warning in piece.warnings],
        "left_out": {kind: left[kind] for kind in ORDER},
        "core_left_out": [_omitted(each, count) for each in core if each not in kept],
        "session_left_out": [_omitted(each, count) for each in states if each not in kept],
        "snapshot": answer["snapshot"],
    } | {name: answer[name] for name in ("missing_shards",) if name in answer}


def _within(
    core: list[Numbered],
    states: list[Numbered],
    others: list[Numbered],
    opening: list[str],
    budget: int,
    count: Callable[[str], int],
) -> tuple[list[Numbered], str, int]:
    """What fits, its text and the tokens of that.

    A tokenizer that merges what lines keep apart can count more for a text than for its lines; then less is kept.
    """
    room = budget
    while True:
        first, used = _fitting_whole(core, [*opening, CORE_HEADING], room, count, -1)
        second, used = _fitting_whole(states, [*([] if first else opening), SESSION_HEADING], room, count, used)
        kept = first + second + _fitting(others, [] if first or second else opening, room, count, used)
        text = "\n".join(_text(kept, opening))
        tokens = count(text) if kept else 0
        if tokens <= budget:
            return kept, text, tokens
        room -= tokens - budget


def _citation(n: int, piece: Piece) -> Answer:
    return {"n": n, "kind": piece.kind} | piece.source


def _item(numbered: Numbered, count: Callable[[str], int]) -> Answer:
    """A piece with its content, its citation, its calibrated score and the tokens of its lines."""
    n, piece, lines = numbered
    own = {"kind": piece.kind, "content": piece.text, "citation": _citation(n, piece)}
    return own | {"score": piece.score, "tokens": count("\n".join(lines))}


def _fitting_whole(
    numbered: list[Numbered], opening: list[str], budget: int, count: Callable[[str], int], tokens: int
) -> tuple[list[Numbered], int]:
    """The pieces that fit one after another below their heading, and the tokens of all (-1 if nothing is used yet).

    Pieces that do not fit are passed over.
    """
    kept: list[Numbered] = []
    due = opening
    for n, piece, lines in numbered:
        cost = sum(count(line) + 1 for line in [*due, *lines])
        if tokens + cost <= budget:
            kept.append((n, piece, lines))
            tokens, due = tokens + cost, []
    return kept, tokens


def _omitted(numbered: Numbered, count: Callable[[str], int]) -> Answer:
    """A core block or session that did not fit, by name."""
    _, piece, lines = numbered
    own = {name: piece.source[name] for name in ("topic_id", "title", "scope")}
    return own | {"tokens": sum(map(count, lines))}


def _fitting(
    numbered: list[Numbered], opening: list[str], budget: int, count: Callable[[str], int], tokens: int
) -> list[Numbered]:
    """The longest prefix of pieces that fits after what is used.

    The first piece includes the cost of the opening.
    """
    kept: list[Numbered] = []
    due = opening
    for n, piece, lines in numbered:
        heads = piece.kind in HEADINGS and not any(other.kind == piece.kind for _, other, _ in kept)
        cost = sum(count(line) + 1 for line in [*due, *([HEADINGS[piece.kind]] if heads else ()), *lines])
        if tokens + cost > budget:
            break
        kept.append((n, piece, lines))
        tokens, due = tokens + cost, []
    return kept


def _reading(kept: list[Numbered]) -> list[Numbered]:
    """The pieces in the order of the text."""

    def place(numbered: Numbered) -> tuple[int, int, int, int]:
        n, piece, _ = numbered
        return _SECTIONS.get(piece.kind, 0), piece.topic or 0, _READ.index(piece.kind), n

    return sorted(kept, key=place)


def _text(kept: list[Numbered], opening: list[str]) -> list[str]:
    """The text line by line: core blocks, sessions, topic by topic with summary and fields, resources, evidence."""
    if not kept:
        return []
    reading = _reading(kept)
    topics = [line for _, piece, lines in reading if piece.topic is not None for line in lines]
    return [
        *opening,
        *_section(reading, "core", CORE_HEADING),
        *_section(reading, "session", SESSION_HEADING),
        *topics,
        *(line for kind, heading in HEADINGS.items() for line in _section(reading, kind, heading)),
    ]


def _section(reading: list[Numbered], kind: str, heading: str) -> list[str]:
    """The lines of all pieces of a kind below their heading; nothing without any."""
    lines = [line for _, piece, lines in reading if piece.kind == kind for line in lines]
    return [heading, *lines] if lines else []


def _lines(n: int, piece: Piece) -> list[str]:
    """The lines of a piece: its text with its number, then its warnings."""
    return [
        f"{piece.text} [{n}]",
        *(f"{WARNING}{each['kind']}: {one_line(each['message'])}" for each in piece.warnings),
    ]
