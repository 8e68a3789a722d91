"""Duplicates of records that arrive in parts, with a night after each part, beside one night for all of them.

Every night is a real run of `memstate maintain` on a store of its own. The parts are drawn at random.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labelled import Labelled
from real_stores import day, groups, import_lines, lines_of, over_directories, print_table
from scoring import Result

from memstate_core.run.store import open_store
from memstate_pipeline.run import maintain


def merged_in_parts(directory: Path, labelled: Labelled, parts: int, seed: int) -> Result:
    """The merged pairs after the last night.

    Args:
        directory: has `observations.jsonl` or `.jsonl.gz`.
        labelled: the same records with their labels.
        parts: into how many parts the records are divided.
        seed: of the order in which they arrive.
    """
    lines = lines_of(directory)
    random.Random(seed).shuffle(lines)
    with tempfile.TemporaryDirectory() as home:
        store = open_store(Path(home), {})
        for number in range(parts):
            part = lines[number * len(lines) // parts : (number + 1) * len(lines) // parts]
            import_lines(store, part, number)
            maintain(store, day(number))
        return labelled.labels.judged_groups(groups(store, labelled))


def main(given: Sequence[str] | None = None) -> None:
    """Prints a table with a line for each number of parts."""
    parser = over_directories("Merge records that arrive in parts, one night each.")
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 5], help="numbers of parts to compare")
    parser.add_argument("--seed", type=int, default=3, help="of the order in which records arrive")
    args = parser.parse_args(given)
    print_table(
        args.directories,
        "nights",
        lambda *labelled: ((parts, merged_in_parts(*labelled, parts, args.seed)) for parts in args.parts),
    )


if __name__ == "__main__":
    main()
