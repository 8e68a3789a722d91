"""`memstate reembed`: changes the embedding model of a store."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_core.model.quantity import quantity
from memstate_pipeline.cli.shared.corrections import correcting
from memstate_pipeline.cli.shared.options import moment
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.readers import open_readers, served_encoder

if TYPE_CHECKING:
    from memstate_core.embed.model_name import ModelName
    from memstate_core.retrieve.evaluation.recall import Expected
    from memstate_core.run.store import Store
    from memstate_core.state.snapshots import Snapshot


def reembed(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="The model, as `embedding.model` names it.")
    ] = None,
    back: Annotated[bool, typer.Option("--back", help="Go back to the model before the served one.")] = False,
    query_prefix: Annotated[str, typer.Option(metavar="TEXT", help="What it expects before a question.")] = "",
    passage_prefix: Annotated[str, typer.Option(metavar="TEXT", help="What it expects before other texts.")] = "",
    endpoint: Annotated[str, typer.Option(metavar="URL", help="The API that has it; texts are sent there.")] = "",
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Questions with what they should find, JSONL. Default: those that each night is asked.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the recall and change nothing.")] = False,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Logical time, ISO 8601. Default: that of the served snapshot."),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Change the embedding model, and embed everything anew.

    What is served answers by its own model until all is embedded, which is served then. A run that was
    interrupted goes on where it stopped. Each line of FILE is like {"q": "Which boat?", "observations": ["o1"],
    "topics": ["t1"], "scope": "user:aya"}.
    """
    store, at = context.obj.existing_store, moment(now)
    if (model is None) == (not back):
        raise typer.BadParameter("expected either --model M or --back")
    name = _previous(store) if model is None else _named(store, model, query_prefix, passage_prefix, endpoint)
    with live_progress(doing="reembed"):
        asked, recorded = _questions(store, questions, at)
        document = _change(store, name, [*asked, *recorded], at, dry_run=dry_run)
    document |= {"recorded": len(recorded)}
    show(document, as_json, lambda: _lines(document))


def _named(store: Store, model: str, query_prefix: str, passage_prefix: str, endpoint: str) -> ModelName:
    """The name on record: a folder as the settings may name it, from the home; from the working directory otherwise."""
    from memstate_core.embed.model_name import ModelName

    folder = Path(model).expanduser()
    is_from_here = not endpoint and folder.is_dir() and not (store.models_base / model).is_dir()
    place = str(folder.resolve()) if is_from_here else model
    return ModelName(place, query_prefix, passage_prefix, endpoint)


def _previous(store: Store) -> ModelName:
    from memstate_core.embed.model_name import ModelName
    from memstate_core.night.reembed import previous_model

    name = previous_model(store)
    if name is None:
        raise typer.BadParameter("--back: the ledger records no other model; expected --model M")
    return ModelName.parsed(name)


def _questions(store: Store, path: Path | None, at: datetime | None) -> tuple[list[Expected], list[Expected]]:
    """Questions that somebody wrote, and those recorded; these only where no file is given."""
    from memstate_core.night.gates.recall_loss import kept_questions
    from memstate_core.retrieve.evaluation.recall import read_questions
    from memstate_core.state.current import served

    source = "recall.questions in memstate.toml" if path is None else "--questions"
    try:
        if path is not None:
            return read_questions(path), []
        newest = max(snapshot.manifest.now for snapshot in served(store.home, store.shards))
        return kept_questions(store, at or newest)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(f"{source}: {error}") from None


def _change(
    store: Store, name: ModelName, questions: Sequence[Expected], at: datetime | None, *, dry_run: bool
) -> dict[str, Any]:
    """Embeds without the lock, then drafts, sets the settings and publishes with it."""
    from memstate_core.night.reembed import drafts, embed_served, previous_model, publish_drafts
    from memstate_core.retrieve.evaluation.recall import recall
    from memstate_core.run.publications import REEMBEDDING
    from memstate_core.run.store import with_model
    from memstate_core.state.files import replace_file

    changed, settings = with_model(store, str(name)), _settings(store, name)
    document: dict[str, Any] = {"model": str(name), "dry_run": dry_run, "questions": len(questions)}
    with ExitStack() as stack:
        readers = open_readers(store, stack)
        embedded = embed_served(changed, readers)
        if questions:
            encoder = served_encoder(store, readers)
            document["recall_before"] = recall(readers, encoder, store.home.cache, questions)
    document |= {"dimension": embedded.vectors.shape[1], "encoded": embedded.encoded, "from_cache": embedded.cached}
    with correcting(store, "reembed") as shards:
        stale = [each.snapshot for each in shards.values() if each.snapshot.manifest.embedding_model != str(name)]
        fresh = [each.snapshot for each in shards.values() if each.snapshot not in stale]
        document["before"] = sorted({each.manifest.embedding_model for each in stale}) or [str(name)]
        with drafts(changed, stale, f"{REEMBEDDING}{uuid.uuid4()}", at) as made:
            if questions:
                document["recall_after"] = _recall(changed, [*fresh, *(each.snapshot for each in made)], questions)
            if not dry_run:
                replace_file(store.home.root / "memstate.toml", settings)
                publish_drafts(changed, made)
    return document | _served(store, 0 if dry_run else len(stale)) | {"back_to": previous_model(store)}


def _recall(store: Store, snapshots: Sequence[Snapshot], questions: Sequence[Expected]) -> float:
    from memstate_core.retrieve.evaluation.recall import recall
    from memstate_core.retrieve.reader import SnapshotReader

    with ExitStack() as stack:
        readers = [stack.enter_context(SnapshotReader(snapshot)) for snapshot in snapshots]
        return recall(readers, store.encoder, store.home.cache, questions)


def _settings(store: Store, name: ModelName) -> bytes:
    """The settings file with the model.

    Raises:
        SettingsError: an environment variable names another model, or the file is not valid.
    """
    from memstate_core.model.errors import SettingsError
    from memstate_core.policy.toml_edit import with_keys

    for key in name._fields:
        variable = f"MEMSTATE_EMBEDDING_{key}".upper()
        if variable in os.environ:
            allowed = "memstate reembed sets the model in memstate.toml, which this variable overrides; unset it first"
            raise SettingsError(variable, f"embedding.{key}", os.environ[variable], allowed)
    keys = {key: value or None for key, value in name._asdict().items()} | {"dimension": None}
    return with_keys(store.home.root / "memstate.toml", "embedding", keys)


def _served(store: Store, published: int) -> dict[str, Any]:
    from memstate_core.state.current import served
    from memstate_core.state.snapshots import combined_state_hash

    manifests = [snapshot.manifest for snapshot in served(store.home, store.shards)]
    return {
        "published": published,
        "snapshot": ",".join(f"{manifest.shard}/{manifest.number}" for manifest in manifests),
        "state_hash": combined_state_hash({manifest.shard: manifest.state_hash for manifest in manifests}),
    }


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"model: {document['model']}, {document['dimension']} dimensions (before: {', '.join(document['before'])})"
    yield f"embedded: {document['encoded']:,} texts, {document['from_cache']:,} from the cache"
    if document["questions"]:
        before, after = (100 * document[f"recall_{name}"] for name in ("before", "after"))
        kept = f", {document['recorded']:,} of them recorded" * bool(document["recorded"])
        asked = quantity(document["questions"], "questions")
        yield f"recall of {asked}{kept}: {before:.1f} per cent before, {after:.1f} after"
    if document["recorded"]:
        yield "answers on record are those of earlier models, which they favour; --questions FILE compares without that"
    if document["dry_run"]:
        yield f"nothing was changed; {document['snapshot']} is served as before"
    elif document["published"]:
        yield f"published {document['snapshot']}: state hash {document['state_hash']}"
        yield f"to go back: memstate reembed --back, to {document['back_to']}"
    else:
        yield f"nothing to publish: {document['snapshot']} has this model already"
