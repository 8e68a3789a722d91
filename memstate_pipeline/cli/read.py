"""Commands that ask the published snapshot: query, topic, export. They need no lock; `--record` notes a use."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.feedback import At, Record, record_uses, recorded_lines
from memstate_pipeline.cli.output import Json, show
from memstate_pipeline.cli.readers import open_readers
from memstate_pipeline.cli.write import moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memstate_core.run.store import Store

AsOf = Annotated[str | None, typer.Option(help="Answer from the state at that time, ISO 8601.")]


def query(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="The question.")],
    scope: Annotated[
        list[str] | None, typer.Option(metavar="TYPE:ID", help="Scopes to ask; every scope without it.")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Topics to return.")] = 8,
    evidence_k: Annotated[int, typer.Option(min=0, help="Pieces of evidence to return.")] = 10,
    stages: Annotated[str, typer.Option(help="Comma-separated stages.")] = "semantic,structural,temporal",
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    topic_ids: Annotated[
        list[str] | None, typer.Option("--topic", metavar="ID", help="Only these topics, with all their fields.")
    ] = None,
    field_names: Annotated[
        list[str] | None, typer.Option("--field", metavar="NAME", help="Only these fields, detached ones too.")
    ] = None,
    as_of: AsOf = None,
    record: Record = False,
    now: At = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Ask the published snapshot for topics and evidence."""
    from contextlib import ExitStack

    from memstate_core.retrieve.query import Question, answer

    store: Store = context.obj.store
    at = _time_of_use(record, now)
    question = Question(
        text=text,
        scopes=scopes_given(scope),
        top_k=top_k,
        evidence_k=evidence_k,
        stages=stages_given(stages),
        explain=explain,
        as_of=moment(as_of),
        topic_ids=tuple(topic_ids or ()),
        field_names=tuple(field_names or ()),
        asked_at=at or datetime.now(UTC),
    )
    with ExitStack() as stack:
        result = answer(open_readers(store, stack), store.encoder, store.home.cache, question)
    if record:
        result["recorded"] = record_uses(store, result["candidates"], at, fields=field_names)
    show(result, as_json, lambda: [*_told(result, explain), *_recorded(result)])


def topic(
    context: typer.Context,
    topic_id: Annotated[str, typer.Argument(metavar="ID", help="The topic, a tombstone of it, or an alias.")],
    history: Annotated[bool, typer.Option("--history", help="Every revision, not only the newest.")] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="With --history: the revisions that summaries stand for, too.")
    ] = False,
    as_of: AsOf = None,
    record: Record = False,
    failed: Annotated[bool, typer.Option("--failed", help="With --record: it was not what was wanted.")] = False,
    now: At = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Show one topic."""
    from contextlib import ExitStack

    from memstate_core.retrieve.topic import titles_of, topic_record

    at = _time_of_use(record, now, failed=failed)
    store: Store = context.obj.store
    with ExitStack() as stack:
        readers = open_readers(store, stack)
        found = topic_record(readers, topic_id, history=history, as_of=moment(as_of), expand=expand)
        titles = {} if as_json else titles_of(readers, {edge[end] for edge in found["edges"] for end in ("from", "to")})
    if record:
        used = {"topic_id": found["id"], "scope": found["scope"]}
        found["recorded"] = record_uses(store, [used], at, failed=failed)
    show(found, as_json, lambda: [*_topic_lines(found, titles), *_recorded(found)])


def export(
    context: typer.Context,
    format_: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file to write; stdout without it.")] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Write every topic with its history and evidence, tombstones included."""
    from contextlib import ExitStack

    from memstate_core.retrieve.export import export_parquet, export_records

    if format_ not in ("jsonl", "parquet"):
        raise typer.BadParameter(f"unknown format {format_!r}: expected jsonl or parquet")
    if format_ == "parquet" and output is None:
        raise typer.BadParameter("--format parquet needs --output FILE")
    with ExitStack() as stack:
        readers = open_readers(context.obj.store, stack)
        if format_ == "parquet" and output is not None:
            export_parquet(readers, output)
        elif as_json and output is None:
            show({"topics": list(export_records(readers))}, True, list)
        else:
            target = sys.stdout if output is None else stack.enter_context(output.open("w", encoding="utf-8"))
            target.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in export_records(readers))
    if output is not None:
        show({"output": str(output), "format": format_}, as_json, lambda: [f"wrote {output}"])


def _time_of_use(record: bool, now: str | None, failed: bool = False) -> datetime | None:
    if not record and (failed or now is not None):
        raise typer.BadParameter(f"{'--failed' if failed else '--now'} says something of a use: it needs --record")
    return moment(now)


def stages_given(given: str) -> frozenset[str]:
    """The stages that an option names.

    Raises:
        BadParameter: there is no such stage.
    """
    from memstate_core.retrieve.query import STAGES

    wanted = frozenset(stage.strip() for stage in given.split(",") if stage.strip())
    if wanted - STAGES:
        raise typer.BadParameter(f"unknown stage in {given!r}: expected some of {', '.join(sorted(STAGES))}")
    return wanted


def scopes_given(given: list[str] | None) -> tuple[str, ...] | None:
    """The scopes that options name; None where they name none.

    Raises:
        BadParameter: one is no scope.
    """
    from memstate_core.model.scope import parse_scope

    try:
        return tuple(parse_scope(scope) for scope in given) if given else None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _told(result: dict[str, Any], explain: bool) -> list[str]:
    lines = [f"topics (snapshot {result['snapshot']})"]
    for candidate in result["candidates"]:
        fields = "; ".join(
            f"{field['name']}: {field['current']['value']}" for field in candidate["fields"] if field["current"]
        )
        lines += [f"  {candidate['similarity']:.3f}  {candidate['title']}  [{candidate['topic_id']}]"]
        lines += [f"         {fields[:160]}"] * bool(fields)
        lines += [f"         warning: {warning}" for warning in candidate["warnings"]]
        lines += [f"         {json.dumps(candidate['explain'])}"] if explain else []
    lines += ["evidence"]
    for found in result["evidence"]:
        text = " ".join(str(found["text"]).split())
        lines += [f"  {found['score']:.3f}  {found['observed_at'][:16]}  {found['observation_id']}  {text[:140]}"]
        lines += [f"         {json.dumps(found['explain'])}"] if explain else []
    return lines


def _recorded(answer: dict[str, Any]) -> list[str]:
    return recorded_lines(answer["recorded"]) if "recorded" in answer else []


def _topic_lines(record: dict[str, Any], titles: Mapping[str, str]) -> list[str]:
    kind = f" ({record['topic_kind']})" if record["topic_kind"] else ""
    lines = [
        f"{record['title']}{kind}",
        f"  {record['id']}  {record['scope']}  {record['state']}  salience {record['salience']:.3f}",
    ]
    lines += [f"  {line}" for line in (record["summary"] or "").splitlines()]
    for name, field in record["fields"].items():
        for place, revision in enumerate(field["history"]):
            why = f"  ({revision['why_changed']})" if revision["why_changed"] else ""
            label = f"{name}:" if place == 0 else " " * (len(name) + 1)
            lines += [
                f"  {label} {json.dumps(revision['value'], ensure_ascii=False)}  since {revision['valid_from']}{why}"
            ]
    for edge in record["edges"]:
        outward = edge["from"] == record["id"]
        other = edge["to"] if outward else edge["from"]
        called = f"  {titles[other]}" if other in titles else ""
        lines += [f"  {'→' if outward else '←'} {edge['kind']}{called}  [{other}]"]
    return lines + [f"  warning: {warning}" for warning in record["warnings"]]
