"""What the layers of the memory cost a night: a first night of this code and one of the commit before the layers.

Both take the same dump of plain observations into a fresh store, in turns, each in a process of its own, with the made
vectors of `made_store.py`. Compared are CPU seconds, which differ less than wall time on a machine with other work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from unittest.mock import patch

import generate
import made_store
from measures import Measure
from questions import ROOT, checkout

from memstate_core.embed.encoder import Encoder
from memstate_core.ingest.importer import import_paths
from memstate_core.run.store import open_store
from memstate_pipeline.run import maintain

BEFORE = "612e455"
"""The commit before the layers."""
MOST = 1.1


def compared(folder: Path, observations: int, rounds: int) -> list[Measure]:
    """The ratio of the nights, and the seconds of each.

    Args:
        folder: for the dump, the stores and the working tree of the commit.
        observations: rows of the dump.
        rounds: nights of each code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dump = folder / "dump.jsonl"
    generate.main([str(dump), "--observations", str(observations), "--topics", str(observations // 3), "--seed", "7"])
    with checkout(BEFORE, folder / "before") as tree:
        pairs = [(_night(tree, dump), _night(ROOT, dump)) for _ in range(rounds)]
    then, now = zip(*pairs, strict=True)
    ratios = [after / before for before, after in pairs]
    return [
        Measure("first night: CPU against the commit before the layers", median(ratios), "times", most=MOST),
        Measure("first night: CPU", median(now), "s"),
        Measure("first night, before the layers: CPU", median(then), "s"),
    ]


def _night(tree: Path, dump: Path) -> float:
    """The CPU seconds of a night of this tree's code, without those of the import."""
    program = [sys.executable, str(Path(__file__).resolve()), str(dump)]
    printed = subprocess.run(
        program, check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tree)}
    )
    return float(json.loads(printed.stdout.splitlines()[-1])["cpu"])


def main(given: Sequence[str] | None = None) -> None:
    """Imports a dump into a fresh store and runs one night, by whatever code Python finds; prints its seconds."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("dump", type=Path)
    args = parser.parse_args(given)
    with (
        tempfile.TemporaryDirectory(dir=args.dump.parent) as home,
        patch.object(Encoder, "encode", made_store.MadeEncoder.encode),
    ):
        store = open_store(Path(home))
        import_paths(store.ledger, store.settings, [args.dump], now=generate.END, run_id="made")
        began = time.process_time()
        done = maintain(store, generate.END)
        spent = {"cpu": time.process_time() - began, "seconds": dict(done.summary["seconds"])}
    sys.stdout.write(json.dumps(spent) + "\n")


if __name__ == "__main__":
    main()
