"""`memstate eval`: how good answers and context packs are, over questions with marked evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_core.model.quantity import quantity
from memstate_pipeline.cli.shared.output import Json, note, show
from memstate_pipeline.cli.shared.progress import live_progress
from memstate_pipeline.cli.shared.readers import open_readers, served_encoder

if TYPE_CHECKING:
    from memstate_core.retrieve.evaluation.recall import Expected
    from memstate_core.run.store import Store

_MISSED = 4
_WIDTH = 28


def eval_(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help='Questions, a line each: {"q": "Which boat?", "observations": ["o1"], "topics": ["t1"]}.',
        ),
    ],
    k: Annotated[
        list[int] | None, typer.Option("--k", min=1, max=50, metavar="K", help="Recall at K. Default: 5, 10 and 25.")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, metavar="N", help="Tokens of a context pack.")] = 1000,
    thresholds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Least value of metrics (most of irrelevant_injection_rate), TOML.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the confidence intervals.")] = 0,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Measure answers and packs on marked questions.

    A question has ids of the observations and topics that it should find. Reads the served snapshot and writes
    nothing. Exits with 4 if a threshold is missed.
    """
    cuts = sorted(set(k or (5, 10, 25)))
    questions, bounds = _questions(file), _thresholds(thresholds, cuts)
    document = _measured(context.obj.store, questions, cuts, budget, seed)
    document["missed"] = _missed(document, bounds)
    for each in document["unknown"]:
        where = f"{each['place']}: there is no {each['id']} in snapshot {document['snapshot']}"
        note(f"warning: {where}; it counts as missed")
    show(document, as_json, lambda: _lines(document))
    if document["missed"]:
        raise typer.Exit(_MISSED)


def _questions(file: Path) -> list[Expected]:
    from memstate_core.retrieve.evaluation.recall import read_questions

    try:
        return read_questions(file)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _thresholds(file: Path | None, cuts: list[int]) -> dict[str, float]:
    """The thresholds by metric; none without a file."""
    import tomllib

    from memstate_core.retrieve.evaluation.evaluate import metric_names

    if file is None:
        return {}
    names = metric_names(cuts)
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        if unknown := sorted(found.keys() - set(names)):
            raise ValueError(f"no metric is called {', '.join(unknown)} (known: {', '.join(names)})")
        return {name: _number(name, value) for name, value in found.items()}
    except ValueError as error:
        raise typer.BadParameter(f"--thresholds: {file}: {error}; expected lines such as recall_at_10 = 0.6") from None


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} is {value!r}, not a number from 0 to 1")
    return float(value)


def _measured(store: Store, questions: list[Expected], cuts: list[int], budget: int, seed: int) -> dict[str, Any]:
    from contextlib import ExitStack
    from dataclasses import asdict

    from memstate_core.embed.model_tokenizer import TokenCounter
    from memstate_core.model.progress import tracked
    from memstate_core.retrieve.evaluation.evaluate import Evaluation, summarised

    with live_progress(doing="eval"), ExitStack() as stack:
        readers = open_readers(store, stack)
        encoder = served_encoder(store, readers)
        counter = TokenCounter(encoder.model, encoder.base)
        evaluation = Evaluation(readers, encoder, store.home.cache, counter, counter.name)
        asked = tracked(questions, "eval", len(questions), "questions")
        rows = [evaluation.scores(each, budget, cuts) for each in asked]
        unknown = [{"place": place, "id": found} for place, found in evaluation.unknown(questions)]
        names = ",".join(reader.name for reader in readers)
    metrics = {name: asdict(metric) for name, metric in summarised(rows, seed).items()}
    counted = {"questions": len(rows), "budget": budget, "counted_by": counter.name, "snapshot": names}
    return counted | {"metrics": metrics, "unknown": unknown}


def _missed(document: Mapping[str, Any], bounds: Mapping[str, float]) -> list[str]:
    from memstate_core.retrieve.evaluation.evaluate import Metric, missed

    return missed({name: Metric(**values) for name, values in document["metrics"].items()}, bounds)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    asked = quantity(document["questions"], "questions")
    yield f"{asked} to {document['snapshot']}, packs of {document['budget']:,} tokens"
    for name, found in document["metrics"].items():
        interval = f"{found['low']:.3f} to {found['high']:.3f}"
        yield f"{name:{_WIDTH}}{found['mean']:.3f}  ({interval}, {quantity(found['questions'], 'questions')})"
    yield from (f"missed  {sentence}" for sentence in document["missed"])
