"""Answers that changed: whether the newest of several statements is found, and comes first.

The chats are those of `made_updates.py`. They are imported and one night is run by the real program; then each question
is answered in this process, with the defaults of a query. A question for what holds now is right if the turn that says
so is among the first five and before every turn that it supersedes; one for what held before, if the last superseded
turn is among the first five. An answer shows an old statement as current if a superseded turn among the first five does
not name a later one (`replaced_by`), and doubts the newest if that names one. Facts at even places of
`changed_facts.FACTS` were looked at while ranking was designed; the others were held back. `--facts fresh` asks about
those of `fresh_facts.py`.

With `--extractor` a language model's part is played from the truth (`scripted_extractor.py`), which measures what
memstate makes of right answers; `--missed` is the share of statements that it misses.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import made_updates
import numpy as np
import polars as pl
from ranking import bootstrapped
from scripted_extractor import Statements, read_statements, serving

from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home

EXTRACTOR = '[extractor]\nbase_url = "{url}"\nmodel = "m"\nmax_requests = 100000\nmax_tokens = 100000000\n'
NOW = "2026-01-05T00:00:00Z"
FIRST = 5
PARTS = ["seen", "held back", "fresh"]
"""What each fact was when ranking was designed."""


def prepared(data: Path, home: Path, statements: Statements | None = None) -> None:
    """Imports the turns and runs one night, with an extractor if there are statements for it."""
    if statements is None:
        _night(data, home)
        return
    with serving(statements) as url:
        (home / "memstate.toml").write_text(EXTRACTOR.format(url=url))
        _night(data, home)


def _night(data: Path, home: Path) -> None:
    program = [sys.executable, "-m", "memstate_pipeline", "--home", str(home)]
    for command in (["import", str(data / "turns.jsonl")], ["maintain", "--now", NOW]):
        subprocess.run([*program, *command, "--json"], check=True, stdout=subprocess.DEVNULL)


def opened(
    stack: ExitStack, folder: Path, facts: str, people: int, seed: int, missed: float | None = None
) -> tuple[SnapshotReader, list[dict[str, Any]]]:
    """Makes chats and their store below a folder, or takes those that are there.

    Args:
        stack: closes the reader.
        folder: keeps chats and store.
        facts: the set of facts.
        people: how many people talk.
        seed: of the chats.
        missed: the share of statements that an extractor misses; None without one.

    Returns:
        The reader of the store and the truth.
    """
    home = folder / f"{facts}-{people}-{seed}{'' if missed is None else f'-missed-{missed}'}"
    data = home / "chats"
    made_updates.write(data, people, seed, made_updates.FACT_SETS[facts])
    if current_snapshot(Home(home), "s0") is None:
        prepared(data, home, None if missed is None else read_statements(data / "statements.jsonl", missed, seed))
    snapshot = current_snapshot(Home(home), "s0")
    assert snapshot is not None
    updates = [json.loads(line) for line in (data / "updates.jsonl").read_text().splitlines()]
    return stack.enter_context(SnapshotReader(snapshot)), updates


def answered(reader: SnapshotReader, updates: list[dict[str, Any]]) -> pl.DataFrame:
    """One row for each question: its fact, the kind of update, what it asks for and whether the answer is right."""
    encoder = QuestionEncoder(reader.snapshot.manifest.embedding_model, cached=1)
    return pl.DataFrame(row for update in updates for row in _rows(reader, encoder, update))


def _rows(reader: SnapshotReader, encoder: QuestionEncoder, update: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for asks, texts in (("now", update["now"]), ("before", [update["before"]])):
        for text in texts:
            found = answer([reader], encoder, None, Question(text, (update["scope"],)))["evidence"]
            yield {"part": update["part"], "kind": update["kind"], "asks": asks} | judged(found[:FIRST], update, asks)


def judged(first: list[dict[str, Any]], update: dict[str, Any], asks: str) -> dict[str, bool]:
    newest, superseded = update["newest"], update["superseded"]
    ids = [each["observation_id"] for each in first]
    if asks == "before":
        return {"found": superseded[-1] in ids, "right": superseded[-1] in ids, "old": False, "doubted": False}
    current = {each["observation_id"] for each in first if "replaced_by" not in each}
    return {
        "found": newest in ids,
        "right": newest in ids and not set(superseded) & set(ids[: ids.index(newest)]),
        "old": not current.isdisjoint(superseded),
        "doubted": newest in ids and newest not in current,
    }


def report(answers: pl.DataFrame, seed: int) -> str:
    """The table, in per cent, with 95 per cent bootstrap intervals."""
    groups = answers.with_columns(pl.concat_list("kind", pl.lit("all")).alias("kind")).explode("kind")
    names = (
        "asks for",
        "kind of update",
        "facts",
        "questions",
        "found @5",
        "right",
        "old as current",
        "newest doubted",
    )
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    keys = ["asks", "kind", "part"]
    for key, rows in sorted(groups.group_by(keys), key=lambda each: (*each[0][:2], PARTS.index(each[0][2]))):
        asks, kind, part = key
        right = bootstrapped(100 * rows["right"].to_numpy().astype(np.float64), seed)
        found, old, doubted = (f"{100 * rows[name].mean():.1f}" for name in ("found", "old", "doubted"))  # type: ignore[operator]
        shown = f"{right.mean:.1f} ({right.low:.1f} to {right.high:.1f})"
        cells = [asks, kind, part, rows.height, found, shown, old, doubted]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Measure whether newer statements come first.")
    parser.add_argument("--people", type=int, default=15, help="each has every fact of the set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--facts", choices=made_updates.FACT_SETS, default="first", help="the set of facts that change")
    parser.add_argument("--homes", type=Path, metavar="DIR", help="keep the store here, and use one that is here")
    parser.add_argument("--extractor", action="store_true", help="a scripted language model extracts the facts")
    parser.add_argument("--missed", type=float, default=0.0, help="the share of statements that it misses")
    args = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = args.homes or Path(scratch)
        missed = args.missed if args.extractor else None
        reader, updates = opened(stack, folder, args.facts, args.people, args.seed, missed)
        print(report(answered(reader, updates), args.seed))


if __name__ == "__main__":
    main()
