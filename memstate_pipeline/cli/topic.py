"""The `topic` command: one topic with its fields, edges and warnings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.accesses import AccessTime, Record, access_time, record_accesses, recorded_lines
from memstate_pipeline.cli.shared.options import AsOf, moment
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.readers import open_sound_readers

if TYPE_CHECKING:
    from memstate_core.retrieve.reader import SnapshotReader
    from memstate_core.run.store import Store
    from memstate_core.state.damaged_shards import DamagedShards


def topic(
    context: typer.Context,
    topic_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="A topic, an alias, a topic merged away, or a topic_key or title."),
    ],
    history: Annotated[bool, typer.Option("--history", help="Show every revision, not only the newest.")] = False,
    expand: Annotated[
        bool, typer.Option("--expand", help="With --history: show summarised revisions in full.")
    ] = False,
    as_of: AsOf = None,
    record: Record = False,
    failed: Annotated[bool, typer.Option("--failed", help="With --record: the topic was not useful.")] = False,
    now: AccessTime = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Show one topic."""
    from contextlib import ExitStack

    from memstate_core.model.text import iso
    from memstate_core.retrieve.views.topic import titles_of, topic_record

    store: Store = context.obj.store
    at = access_time(store, record, now, failed=failed)
    with ExitStack() as stack:
        readers, damaged = open_sound_readers(store, stack)
        name = _named(readers, topic_id, damaged)
        with _named_as_asked(topic_id):
            found = topic_record(readers, name, history=history, as_of=moment(as_of), expand=expand, damaged=damaged)
        served = next(iso(each.snapshot.manifest.now) for each in readers if found["scope"] in each.scopes)
        titles = {} if as_json else titles_of(readers, {edge[end] for edge in found["edges"] for end in ("from", "to")})
    if record:
        accessed = {"topic_id": found["id"], "scope": found["scope"]}
        found["recorded"] = record_accesses(store, [accessed], at, failed=failed)
    show(found, as_json, lambda: [*_lines(found, titles, served), *recorded_lines(found)])


@contextmanager
def _named_as_asked(asked: str) -> Iterator[None]:
    """A topic that did not exist yet is named as the user did, and not by the id that its title led to."""
    from memstate_core.model.errors import TopicNotFound

    try:
        yield
    except TopicNotFound as error:
        if error.facts["since"] is None:
            raise
        raise TopicNotFound(asked, error.facts["snapshot"], since=error.facts["since"]) from None


def _named(readers: list[SnapshotReader], name: str, damaged: DamagedShards) -> str:
    """The id itself if a topic has it, else the id of the only topic with this key, or with this title.

    Raises:
        TopicNotFound: there is none; it names candidates.
        TopicAmbiguous: there is more than one.
        SnapshotDamaged: there is none in the sound shards, and a damaged one may have it.
    """
    from memstate_core.model.errors import TopicAmbiguous, TopicNotFound
    from memstate_core.retrieve.views.topic import titled
    from memstate_core.retrieve.views.topic_keys import topic_id_of

    try:
        return topic_id_of(readers, name)
    except TopicNotFound as error:
        found, snapshot = titled(readers, name), error.facts["snapshot"]
        if found.height == 1 and found["is_equal"].item():
            return str(found["id"].item())
        damaged.require_any(None, [])
        if found["is_equal"].any():
            raise TopicAmbiguous(name, snapshot, found.select("title", "id", "scope").rows()) from None
        raise TopicNotFound(name, snapshot, found.select("title", "id").rows()) from None


def _lines(record: Mapping[str, Any], titles: Mapping[str, str], served: str) -> Iterator[str]:
    """The record as text; `served` is the time of the night, after which values begin that are still to come."""
    kind = f" ({record['topic_kind']})" if record["topic_kind"] else ""
    yield f"{record['title']}{kind}"
    yield f"  {record['id']}  {record['scope']}  {record['state']}  salience {record['salience']:.3f}"
    yield from (f"  {line}" for line in (record["summary"] or "").splitlines())
    for name, field in record["fields"].items():
        yield from _revisions(name, field["history"], served)
    for name, revisions in record.get("topic_history", {}).items():
        yield from _revisions(name, revisions[1:], served, earlier=True)
    yield from (_edge(edge, record["id"], titles) for edge in record["edges"])
    yield from (f"  warning: {warning['message']}" for warning in record["warnings"])


def _revisions(name: str, history: list[dict[str, Any]], served: str, earlier: bool = False) -> Iterator[str]:
    label = f"earlier {name}:" if earlier else f"{name}:"
    for place, revision in enumerate(history):
        value = json.dumps(revision["value"], ensure_ascii=False)
        begins = "from" if revision["valid_from"] > served else "since"
        why = f"  ({revision['why_changed']})" if revision["why_changed"] else ""
        yield f"  {label if place == 0 else ' ' * len(label)} {value}  {begins} {revision['valid_from']}{why}"


def _edge(edge: Mapping[str, Any], topic_id: str, titles: Mapping[str, str]) -> str:
    outward = edge["from"] == topic_id
    other = edge["to"] if outward else edge["from"]
    title = f"  {titles[other]}" if other in titles else ""
    return f"  {'→' if outward else '←'} {edge['kind']}{title}  [{other}]"
