"""The `demo` command: the bundled sample, one night, two questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.maintain import step_progress
from memstate_pipeline.cli.shared.output import Json, as_uri, note, show
from memstate_pipeline.cli.shared.terminal import cut, width

if TYPE_CHECKING:
    from memstate_core.run.store import Store

FOLDER = "memstate-demo"
NIGHT = datetime(2026, 4, 6, 2, tzinfo=UTC)
"""The night after the sample's last day."""


def demo(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Try memstate on a bundled sample.

    Imports five weeks of chats and notes, runs one night of maintenance and asks two questions.
    """
    from memstate_core.run.home_path import folder_path
    from memstate_core.run.store import open_store

    home = folder_path(context.obj.home or FOLDER)
    store = open_store(home)
    note(f"Store of the demo: {home}")
    document, pages = _play(store)
    show(document, as_json, lambda: _lines(document, pages, context.obj.home or FOLDER))


def _play(store: Store) -> tuple[dict[str, Any], tuple[Path, ...]]:
    from contextlib import ExitStack

    from memstate_core import demo as sample
    from memstate_core.ingest.importer import import_paths
    from memstate_core.retrieve.query import Question, answer
    from memstate_pipeline import run
    from memstate_pipeline.cli.shared.readers import open_readers

    paths = sample.sample_paths()
    note("Importing the sample …")
    imported = import_paths(store.ledger, store.settings, paths, now=NIGHT, run_id="demo-import")
    note("Running one night of maintenance …")
    with step_progress(store):
        done = run.maintain(store, NIGHT)
    note("Asking two questions …")
    with ExitStack() as stack:
        readers = open_readers(store, stack)
        asked = [Question(text=text, scopes=(sample.SCOPE,), top_k=3, evidence_k=3) for text in sample.QUESTIONS]
        answers = [answer(readers, store.encoder, store.home.cache, question) for question in asked]
    return {"import": imported.to_json(), "maintain": done.summary, "answers": answers}, done.pages


def _lines(document: Mapping[str, Any], pages: Sequence[Path], home: str) -> Iterator[str]:
    imported, night = document["import"], document["maintain"]
    refused = ", ".join(f"{count} {reason}" for reason, count in imported["reasons"].items())
    counts, totals = night["counts"], night["totals"]
    yield ""
    yield f"Import   {imported['read']} records: {imported['accepted']} accepted, {imported['duplicate']} duplicate,"
    yield f"         {imported['quarantined']} quarantined ({refused})"
    yield f"Night    {counts['topics_created']} topics created with {counts['revisions']} revisions,"
    yield f"         {counts['merges']} duplicates merged, {totals['active']} topics active;"
    yield f"         {len(night['checks'])} checks passed"
    for asked in document["answers"]:
        yield ""
        yield f"Question {asked['query']}"
        yield from (f"  topic    {candidate['title']}" for candidate in asked["candidates"][:2])
        yield from (f"  evidence {_evidence(found)}" for found in asked["evidence"])
    yield ""
    yield "Next steps"
    yield from (f"  read the report     {as_uri(page)}" for page in pages)
    yield f'  ask a question      memstate --home {home} query "…"'
    yield f"  export all topics   memstate --home {home} export"
    yield f"  open Dagster's UI   memstate --home {home} ui"
    yield "  use your own data   memstate import PATH, then memstate maintain"


def _evidence(found: Mapping[str, Any]) -> str:
    return f"{found['observed_at'][:10]}  {cut(found['text'], width() - 23)}"
