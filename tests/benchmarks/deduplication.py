"""Duplicates in labelled records: memstate's matcher beside its peers, on the same records in one run.

`labelled` reads the directories. All methods get the same titles, summaries and fields. The two plain similarities
also get the labels, to choose their threshold, so theirs are upper bounds. semhash runs with its defaults, except that
it gets the shared vectors in place of those of its own model, which would have to be downloaded. `splink_peer` sets up
Splink.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from labelled import Labelled, read
from peers import OPTIONAL, PEERS, Row
from reliability import lines, reliability
from scoring import Ranking

from memstate_core.embed.encoder import Encoder
from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.policy.settings import Policy
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.deduplication import Deduplicated, deduplicate

HIGH = 0.95
"""The precision at which the recall of all rankings is compared, beside memstate's own."""


def report(name: str, labelled: Labelled) -> str:
    """The section of one set: every method, and how reliable memstate's probabilities are."""
    began = time.process_time()
    found = matched(labelled)
    own = _row(found, labelled, time.process_time() - began)
    rows = [own, *(row for peer in PEERS for row in peer(labelled))]
    labels, pairs = labelled.labels, found.pairs
    found_true = f"{labels.true(pairs.a, pairs.b).sum():,} of {len(labels.truth):,} true pairs"
    parts = [
        f"### {name}: {len(labelled.corpus):,} records, {len(labels.truth):,} true pairs",
        f"Embeddings: {labelled.embedding}.\n",
        *_table(rows, own.result.precision),
        f"\nmemstate's {len(pairs):,} candidates hold {found_true}; all of them by probability:\n",
        *lines(reliability(pairs.a, pairs.b, found.scored.probability, labels)),
    ]
    return "\n".join(parts)


def matched(labelled: Labelled) -> Deduplicated:
    """What memstate finds with the default policy and no labels."""
    limits = constraints(empty(DECISION), empty(EVIDENCE_TOPIC))
    return deduplicate(labelled.corpus, limits, sure=Policy().merge_probability)


def _row(found: Deduplicated, labelled: Labelled, seconds: float) -> Row:
    """memstate's groups with all their pairs; its ranking has the merged pairs first, then the likely ones."""
    labels, pairs, probability = labelled.labels, found.pairs, found.scored.probability
    counted = found.grouped & ~labels.unlabelled(pairs.a, pairs.b)
    ranking = Ranking.of(pairs.a, pairs.b, probability + found.grouped, labels)
    expected = float(found.doubt[counted].sum())
    return Row("memstate", labels.judged_groups(found.groups), seconds, expected, ranking)


def _table(rows: Sequence[Row], precision: float) -> list[str]:
    """The methods, with the recall of their rankings at HIGH and, unless it is 0, at a given precision."""
    levels = {f"recall at P {HIGH:.2f} *": HIGH} | ({f"at P {precision:.3f} *": precision} if precision else {})
    counts = ["pairs", "precision", "recall", "F1", "CPU s", "false pairs", "expected false", "unlabelled"]
    head = ["method", *counts, *levels]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(_line(row, levels.values()) for row in rows)]


def _line(row: Row, levels: Iterable[float]) -> str:
    found, ranking = row.result, row.ranking
    rates = [f"{rate:.3f}" for rate in (found.precision, found.recall, found.f1)]
    expected = "" if row.expected is None else f"{row.expected:.1f}"
    counts = [f"{found.pairs - found.true:,}", expected, f"{found.unlabelled:,}"]
    ranked = ["" if ranking is None else f"{ranking.recall_at(least):.3f}" for least in levels]
    return f"| {' | '.join([row.method, f'{found.pairs:,}', *rates, f'{row.seconds:.1f}', *counts, *ranked])} |"


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare methods of finding duplicates on labelled records.")
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIR", help="observations.jsonl[.gz], pairs.csv")
    parser.add_argument("--cache", type=Path, metavar="FILE", help="keeps embeddings for the next run")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Prints one section for each directory."""
    args, encoder = _arguments(given), Encoder()
    with tempfile.TemporaryDirectory() as scratch:
        for directory in args.directories:
            labelled = read(directory, encoder, args.cache or Path(scratch) / "embeddings.sqlite")
            print(report(directory.resolve().name, labelled), end="\n\n", flush=True)
    print("* Chosen with the labels in hand: an upper bound of the method.")
    for package in OPTIONAL:
        if find_spec(package) is None:
            print(f"{package} is not installed: pip install -e '.[bench]'.")


if __name__ == "__main__":
    main()
