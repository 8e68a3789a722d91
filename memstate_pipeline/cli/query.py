"""The `query` command: topics and evidence from the published snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from memstate_pipeline.cli.shared.accesses import AccessTime, Record, access_time, record_accesses, recorded_lines
from memstate_pipeline.cli.shared.options import (
    ALL_STAGES,
    AsOf,
    QuestionText,
    Scopes,
    Stages,
    moment,
    parsed_scopes,
    parsed_stages,
)
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.readers import missing_lines, open_sound_readers, served_encoder
from memstate_pipeline.cli.shared.terminal import cut, listed, width, wrapped

if TYPE_CHECKING:
    from memstate_core.run.store import Store

_INDENT = " " * 9
_NARROWEST = 16
"""Columns that a title has at least, so that it is read beside a long id."""


def query(
    context: typer.Context,
    text: QuestionText,
    scope: Scopes = None,
    top_k: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of topics.")] = 8,
    evidence_k: Annotated[int, typer.Option(min=0, metavar="N", help="Maximum number of pieces of evidence.")] = 10,
    stages: Stages = ALL_STAGES,
    explain: Annotated[bool, typer.Option("--explain", help="Show the components of each score.")] = False,
    topic_ids: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="ID", help="Only this topic (id or topic_key), with all its fields."),
    ] = None,
    field_names: Annotated[
        list[str] | None, typer.Option("--field", metavar="NAME", help="Only this field, even if it is detached.")
    ] = None,
    evidence_kinds: Annotated[
        list[str] | None,
        typer.Option("--evidence-kind", metavar="KIND", help="Only evidence of this kind."),
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Only evidence of this tool.")] = None,
    status: Annotated[str | None, typer.Option(metavar="WORD", help="Only evidence with this status.")] = None,
    path: Annotated[str | None, typer.Option(metavar="PATH", help="Only evidence of this file, or below.")] = None,
    as_of: AsOf = None,
    record: Record = False,
    now: AccessTime = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Query the published snapshot for topics and evidence.

    Dates in the question count towards the ranking (the temporal stage): ISO dates (2023-05-08) in any language,
    names of months and relative dates such as "last week" in English and in most languages with locale data.
    """
    from contextlib import ExitStack

    from memstate_core.retrieve.evaluation.recorded_questions import QuestionRecorder
    from memstate_core.retrieve.query import Question, answer
    from memstate_core.retrieve.views.topic_keys import topic_id_of

    store: Store = context.obj.store
    at = access_time(store, record, now)
    question = Question(
        text=text,
        scopes=parsed_scopes(scope),
        top_k=top_k,
        evidence_k=evidence_k,
        stages=parsed_stages(stages),
        explain=explain,
        as_of=moment(as_of),
        field_names=tuple(field_names or ()),
        evidence_kinds=_known_kinds(evidence_kinds),
        tool=tool,
        status=status,
        path=path,
        asked_at=at or datetime.now(UTC),
    )
    with ExitStack() as stack:
        readers, damaged = open_sound_readers(store, stack)
        named = tuple(topic_id_of(readers, name, question.scopes, damaged) for name in topic_ids or ())
        question = replace(question, topic_ids=named)
        result = answer(readers, served_encoder(store, readers), store.home.cache, question, damaged=damaged)
    if record:
        recorder = QuestionRecorder(store.home.recorded_questions, store.settings.recall)
        recorder.record(question, result, at or datetime.now(UTC))
        result["recorded"] = record_accesses(store, result["candidates"], at, fields=field_names)
    show(result, as_json, lambda: [*_lines(result), *recorded_lines(result)])


def _known_kinds(given: list[str] | None) -> tuple[str, ...]:
    """The kinds of evidence that were asked for.

    Raises:
        typer.BadParameter: one of them is unknown.
    """
    from memstate_core.model.observation import Kind

    known = get_args(Kind)
    if unknown := [kind for kind in given or () if kind not in known]:
        raise typer.BadParameter(f"--evidence-kind is {unknown[0]!r}, expected one of {', '.join(known)}")
    return tuple(given or ())


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    from memstate_core.retrieve.packs.passages import passage
    from memstate_core.retrieve.question.question_language import content_terms

    yield from missing_lines(result)
    yield f"topics (snapshot {result['snapshot']})"
    for candidate in result["candidates"]:
        yield from _candidate(candidate)
    yield from ["  none"] * (not result["candidates"])
    yield "evidence"
    words, columns = content_terms(result["query"]), width() - len(_INDENT)
    for found in result["evidence"]:
        yield f"  {_score(found['score'])}  {found['observed_at'][:16]}  {found['observation_id']}"
        yield _INDENT + cut(passage(found["text"] or "", words, columns), columns)
        yield from _explanation(found)
    yield from ["  none"] * (not result["evidence"])


def _candidate(candidate: Mapping[str, Any]) -> Iterator[str]:
    score, named = _score(candidate["similarity"]), f"  [{candidate['topic_id']}]"
    yield f"  {score}  {cut(candidate['title'], max(_NARROWEST, width() - len(_INDENT) - len(named)))}{named}"
    values = _values(candidate["fields"])
    if values:
        yield _INDENT + cut(values, width() - len(_INDENT))
    for warning in candidate["warnings"]:
        yield from wrapped(f"warning: {warning['message']}", _INDENT)
    yield from _explanation(candidate)


def _values(fields: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"{field['name']}: {_plain(field['current']['value'])}" for field in fields if field["current"])


def _plain(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _explanation(entry: Mapping[str, Any]) -> Iterator[str]:
    if "explain" in entry:
        parts = [f"{name} {_score(value)}" for name, value in entry["explain"]["parts"].items()]
        yield from listed(f"score {_score(entry['explain']['score'])} from", parts, _INDENT)


def _score(value: float | None) -> str:
    """Three decimals; a dash as wide where there is no value, as without the semantic stage."""
    return "    -" if value is None else f"{value:.3f}"
