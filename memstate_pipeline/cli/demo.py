"""The `demo` command: the bundled sample, one night, two questions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.output import Json, as_uri, note, show

if TYPE_CHECKING:
    from memstate_core.run.store import Store

FOLDER = "memstate-demo"
NIGHT = datetime(2026, 4, 6, 2, tzinfo=UTC)
"""The night after the sample's last day."""


def demo(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Import a bundled sample, run one night of maintenance, ask two questions."""
    from memstate_core.run.store import open_store

    home = Path(context.obj.home or FOLDER).expanduser().absolute()
    store = open_store(home)
    note(f"A store for the demo: {home}")
    document, pages = _play(store)
    show(document, as_json, lambda: _story(document, pages, context.obj.home or FOLDER))


def _play(store: Store) -> tuple[dict[str, Any], tuple[Path, ...]]:
    from contextlib import ExitStack

    from memstate_core import demo as sample
    from memstate_core.ingest.importer import import_paths
    from memstate_core.retrieve.query import Question, answer
    from memstate_pipeline import run
    from memstate_pipeline.cli.readers import open_readers

    paths = sample.sample_paths()
    note("Importing the sample …")
    imported = import_paths(store.ledger, store.settings, paths, now=NIGHT, run_id="demo-import")
    note("One night of maintenance …")
    done = run.maintain(store, NIGHT)
    note("Asking two questions …")
    with ExitStack() as stack:
        readers = open_readers(store, stack)
        asked = [Question(text=text, scopes=(sample.SCOPE,), top_k=3, evidence_k=3) for text in sample.QUESTIONS]
        answers = [answer(readers, store.encoder, store.home.cache, question) for question in asked]
    return {"import": imported.to_json(), "maintain": done.summary, "answers": answers}, done.pages


def _story(document: dict[str, Any], pages: tuple[Path, ...], home: str) -> list[str]:
    imported, night = document["import"], document["maintain"]
    refused = ", ".join(f"{count} {reason}" for reason, count in imported["reasons"].items())
    counts, totals = night["counts"], night["totals"]
    lines = [
        "",
        f"Import   {imported['read']} records read: {imported['accepted']} accepted, "
        f"{imported['duplicate']} seen before, {imported['quarantined']} quarantined ({refused})",
        f"Night    {counts['topics_created']} topics with {counts['revisions']} revisions, "
        f"{counts['merges']} duplicates merged, {totals['active']} active, {len(night['checks'])} checks passed",
    ]
    for asked in document["answers"]:
        lines += ["", f"Question {asked['query']}"]
        lines += [f"  topic    {candidate['title']}" for candidate in asked["candidates"][:2]]
        lines += [f"  evidence {_line(found)}" for found in asked["evidence"]]
    return [
        *lines,
        "",
        "Where to look next",
        *(f"  the night's page    {as_uri(page)}" for page in pages),
        f'  ask it yourself     memstate --home {home} query "…"',
        f"  every topic         memstate --home {home} export",
        f"  in Dagster's UI     memstate --home {home} ui",
        "  your own memory     memstate import PATH, then memstate maintain",
    ]


def _line(found: dict[str, Any]) -> str:
    return f"{found['observed_at'][:10]}  {' '.join(str(found['text']).split())[:110]}"
