"""The pieces of a context pack: core blocks, sessions, topics, their summaries and fields, resources and evidence.

Topics, evidence and further facts take turns, so that no topic crowds out the others. A warning is never separated from
the piece that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memstate_core.model.forms.core_block import CONTENT
from memstate_core.model.forms.resource import CONTENT as RESOURCE_CONTENT
from memstate_core.model.forms.resource import KIND, OTHER, URI, Resource
from memstate_core.retrieve.facts.conflicts import plain
from memstate_core.retrieve.packs.passages import passage
from memstate_core.retrieve.question.question_language import content_terms

Answer = dict[str, Any]

LONGEST = 400
"""Characters of a summary, a value or a turn that are shown; longer texts are cut, with an ellipsis."""

ORDER = ("core", "session", "topic", "resource", "evidence", "summary", "field")
"""Kinds of pieces, in the order of a turn."""

RESOURCE = Resource.topic_kind()

_NOT_SERVED = ("detached", "archived")


_QUOTED = 80
"""Characters of a turn by which a summary is seen to quote it."""
_PER_TURN = 2
"""How many fields of a topic, and pieces of evidence, one turn has."""


@dataclass(frozen=True)
class Piece:
    """A unit that a pack includes whole or not at all.

    Attributes:
        place: its position in the order of pieces: turn, then kind, then rank.
        kind: one of `ORDER`.
        topic: the rank of its topic; None for core blocks, sessions, resources and evidence, which have sections of
            their own.
        text: its line, without the citation.
        warnings: `kind`, `message` and `field` of each.
        source: what its citation refers to.
        score: its calibrated score, that of its topic for summaries and fields; None for what was not searched for.
    """

    place: tuple[int, int, int]
    kind: str
    topic: int | None
    text: str
    warnings: list[Answer]
    source: Answer
    score: float | None = None


def one_line(text: str, longest: int | None = LONGEST) -> str:
    """A text on one line, of printable characters, cut to a length if there is one."""
    words = " ".join("".join(c if c.isprintable() or c.isspace() else " " for c in text).split())
    return words if longest is None or len(words) <= longest else words[: longest - 1].rstrip() + "…"


def answer_pieces(answer: Answer) -> Iterator[Piece]:
    """The pieces of an answer that are no core blocks or sessions, not in order.

    Evidence does not repeat core blocks, sessions and resources, and topics do not repeat the first two.
    """
    apart = {each["topic_id"] for part in ("core_blocks", "sessions") for each in answer.get(part, ())}
    resources = {each["topic_id"] for each in answer["candidates"] if each["topic_kind"] == RESOURCE}
    topics, evidence = ([found for found in answer[part] if found["topic_id"] not in apart]
                        for part in ("candidates", "evidence"))  # fmt: skip
    words = content_terms(answer["query"])
    replaced = [each for each in evidence if each.get("replaced_by")]
    for rank, topic in enumerate(topics):
        if topic["topic_id"] in resources:
            yield _resource_piece(topic, rank, words)
        else:
            yield from _topic_pieces(topic, rank, replaced)
    for rank, found in enumerate(each for each in evidence if each["topic_id"] not in resources):
        yield _evidence_piece(found, rank, words)


def _piece(
    kind: str,
    turn: int,
    rank: int,
    topic: int | None,
    text: str,
    warnings: list[Answer],
    source: Answer,
    score: float | None = None,
) -> Piece:
    return Piece((turn, ORDER.index(kind), rank), kind, topic, text, warnings, source, score)


def _topic_pieces(topic: Answer, rank: int, replaced: Sequence[Answer]) -> Iterator[Piece]:
    topic_id, fields = topic["topic_id"], topic["fields"]
    named = {field["name"] for field in fields}
    of_fields: dict[str, list[Answer]] = {}
    own: list[Answer] = _topic_warnings(topic)
    for warning in topic["warnings"]:
        at = of_fields.setdefault(warning["field"], []) if warning["field"] in named else own
        at.append({name: warning[name] for name in ("kind", "message", "field")})
    score = topic.get("relevance")
    kind = f" ({one_line(topic['topic_kind'])})" if topic["topic_kind"] else ""
    title = one_line(topic["title"] or topic_id)
    source = {"topic_id": topic_id, "title": topic["title"], "scope": topic["scope"]}
    summary = topic["summary"] if topic["summary"] != topic["title"] else None
    quoted = _quoting_warnings(topic, summary or title, replaced)
    yield _piece("topic", rank, rank, rank, f"# {title}{kind}", own if summary else own + quoted, source, score)
    if summary:
        yield _piece("summary", rank, rank, rank, one_line(summary), quoted, {"topic_id": topic_id}, score)
    for place, field in enumerate(fields):
        warned = of_fields.get(field["name"], [])
        yield replace(_field_piece(field, rank, rank + place // _PER_TURN, topic_id, warned), score=score)


def _resource_piece(topic: Answer, rank: int, words: Sequence[str]) -> Piece:
    """The piece of a resource: its title, kind and URI, and the passage of its content with words of the question."""
    fields = {field["name"]: field["current"] for field in topic["fields"]}
    values = {name: str(plain(current["value"])) for name, current in fields.items() if current["value"] is not None}
    uri, content = values.get(URI), values.get(RESOURCE_CONTENT, topic["summary"])
    about = ", ".join(one_line(each) for each in (values.get(KIND, OTHER), uri) if each)
    said = f": {one_line(passage(content, words, LONGEST))}" if content else ""
    text = f"- {one_line(topic['title'] or topic['topic_id'])} ({about}){said}"
    source = {name: topic[name] for name in ("topic_id", "title", "scope")} | ({"uri": uri} if uri else {})
    if RESOURCE_CONTENT in fields:
        cited = fields[RESOURCE_CONTENT]
        source |= {"field": RESOURCE_CONTENT, "revision_id": cited["id"], "evidence_ids": cited["evidence_ids"]}
    own = [{name: each[name] for name in ("kind", "message", "field")} for each in topic["warnings"]]
    return _piece("resource", rank, rank, None, text, _topic_warnings(topic) + own, source, topic.get("relevance"))


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


def _quoting_warnings(topic: Answer, text: str, replaced: Sequence[Answer]) -> list[Answer]:
    """Warnings of statements that a later one may have replaced, where a topic quotes how they begin."""
    shown, own = one_line(text), [each for each in replaced if each["topic_id"] == topic["topic_id"]]
    quoted = [each for each in own if (begun := one_line(each["text"] or "", None)[:_QUOTED]) and begun in shown]
    return [_replaced(each["replaced_by"], "what it quotes") for each in quoted]


def _replaced(later: str, what: str) -> Answer:
    return _warning("replaced", f"a later statement may have replaced {what} ({later})")


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


def core_piece(block: Answer, rank: int) -> Piece:
    """The piece of a core block, with its whole content."""
    text = f"- {one_line(block['label'])}: {one_line(block['content'], None)}"
    own = {name: block[name] for name in ("topic_id", "scope", "revision_id", "evidence_ids")}
    return _piece("core", 0, rank, None, text, [], own | {"title": block["label"], "field": CONTENT})


def session_piece(session: Answer, rank: int) -> Piece:
    """The piece of an active session, with all that is known of it."""
    said = [session["current_goal"], session["summary"]]
    if session["working_set"]:
        said.append(f"working set: {', '.join(map(str, session['working_set']))}")
    text = "; ".join(one_line(each, None) for each in said if each)
    own = {name: session[name] for name in ("topic_id", "scope", "evidence_ids")}
    title = one_line(session["session_id"], None)
    return _piece("session", 0, rank, None, f"- {title}: {text or session['status']}", [], own | {"title": title})


def _evidence_piece(found: Answer, rank: int, words: Sequence[str]) -> Piece:
    """The piece of evidence: who said it when, and of a long text the passage with words of the question."""
    speaker = f" {one_line(found['actor'])}" if found["actor"] else ""
    text = f"- {found['observed_at'][:10]}{speaker}: {one_line(passage(found['text'] or '', words, LONGEST))}"
    cited = ("observation_id", "scope", "topic_id", "observed_at")
    source: Answer = {name: found[name] for name in cited if name in found}
    later = found.get("replaced_by")
    warnings = [_replaced(later, "it")] if later else []
    return _piece("evidence", rank // _PER_TURN, rank, None, text, warnings, source, found.get("relevance"))
