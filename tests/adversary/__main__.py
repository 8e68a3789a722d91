"""The long form: `python -m tests.adversary --minutes N [--seed S] [--only CLASS …]`.

Runs the classes of attacks until the time is up, always the one that had the least of it, and prints what was tried and
what failed, each failure with the seed that repeats it. Exit code 1 if anything failed. The class `fuzz` needs atheris
(extra `fuzz`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

from tests.adversary import as_of, corruptions, files, fuzz, kills, nights, pills, tenants
from tests.adversary.attack import Attack

CLASSES: dict[str, Attack] = {
    "files": files.attack,
    "as of": as_of.attack,
    "tenants": tenants.attack,
    "pills together": pills.together,
    "pills alone": pills.alone,
    "corruptions": corruptions.attack,
    "kills": kills.attack,
    "nights": nights.attack,
} | ({"fuzz": fuzz.attack} if importlib.util.find_spec("atheris") else {})


def main(arguments: list[str]) -> int:
    """Runs the attacks and prints their figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=CLASSES, default=list(CLASSES))
    given = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * given.minutes
    figures = {name: {"rounds": 0, "cases": 0, "seconds": 0.0, "failed": 0} for name in given.only}
    failures = []
    while (began := time.monotonic()) < ends:
        name = min(given.only, key=lambda each: figures[each]["seconds"])
        seed, failed = given.seed + int(figures[name]["rounds"]), None
        with tempfile.TemporaryDirectory() as folder:
            try:
                figures[name]["cases"] += CLASSES[name](Random(seed), Path(folder))
            except Exception as error:  # noqa: BLE001 - any error is a finding
                traceback.print_exc()
                failed = {"class": name, "seed": seed, "problem": f"{type(error).__name__}: {error}"[:500]}
        figures[name]["rounds"] += 1
        figures[name]["seconds"] = round(figures[name]["seconds"] + time.monotonic() - began, 1)
        if failed:
            figures[name]["failed"] += 1
            failures.append(failed)
    print(json.dumps({"figures": figures, "failures": failures}, indent=2))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
