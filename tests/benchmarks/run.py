"""The runner: benchmarks by name, with what they reached against the targets, as JSON and as a table.

    python tests/benchmarks/run.py --small
    python tests/benchmarks/run.py questions starting --base 6f52504 --out results

Every figure is of this machine, and those with a target either a ratio within one run or a time that a person waits.
`--small` shows in about a minute that all benchmarks run; its figures mean little. Figures that were kept are in
`README.md`, each beside its command.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from measures import Measure

HERE = Path(__file__).parent
BASE = "6f52504"
"""The commit that answered questions from frames."""


@dataclass(frozen=True)
class Given:
    """What a benchmark is given.

    Attributes:
        folder: for stores, kept between runs if the caller names it.
        small: take little time.
        base: the commit to compare with.
        workers: worker processes of a server.
        chats: folders of labelled chats, as for `retrieval.py`; the chats of `chats/` if there are none.
    """

    folder: Path
    small: bool
    base: str
    workers: int
    chats: tuple[Path, ...] = ()


def encoding(given: Given) -> list[Measure]:
    """The encoder beside `SentenceTransformer.encode` on real short texts."""
    from encoding import compared

    return compared(given.chats, *((60, 10, 1) if given.small else (5_000, 200, 3)))


def pairs(given: Given) -> list[Measure]:
    """All pairs of vectors above a cosine, beside semhash and an exact product."""
    from near_pairs import measured

    return measured(2_000 if given.small else 100_000, 0.8)


def chats(given: Given) -> list[Measure]:
    """A made ChatGPT export, from the file to the published snapshot."""
    from importing import all_the_way

    turns = 120 if given.small else 100_000
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        seconds, _ = all_the_way(Path(folder), "chatgpt", turns, 7)
    return [Measure(f"{turns:,} turns, ChatGPT export to snapshot", turns / seconds, "turns/s", least=250.0)]


def questions(given: Given) -> list[Measure]:
    """Questions over HTTP against a commit."""
    from questions import compared

    size = {"topics": 500, "scopes": 2, "seconds": 2, "rounds": 1}
    size = size if given.small else {"topics": 10_000, "scopes": 10, "seconds": 8, "rounds": 5}
    home = given.folder / ("questions-small" if given.small else "questions")
    return compared(home, given.base, given.workers, **size)


def scopes(given: Given) -> list[Measure]:
    """Questions over HTTP against a commit, in scopes as large as those of a million topics in a hundred."""
    from questions import compared

    size = {"topics": 500, "seconds": 2, "rounds": 1} if given.small else {"topics": 20_000, "seconds": 8, "rounds": 3}
    home = given.folder / ("scopes-small" if given.small else "scopes")
    return compared(home, given.base, given.workers, scopes=2, faster=None, most=(12.0, 40.0), **size)


def starting(given: Given) -> list[Measure]:
    """How long commands take to start and end."""
    from starting import started

    return started(given.folder / "demo", 1 if given.small else 5)


def packs(given: Given) -> list[Measure]:
    """Context packs over HTTP, by policy."""
    from packs import measured

    home = given.folder / ("packs-small" if given.small else "packs")
    return measured(home, 500, 2, 20) if given.small else measured(home, 10_000, 10, 300)


def layers(given: Given) -> list[Measure]:
    """A night against the commit before the layers of the memory."""
    from layers import compared

    return compared(given.folder / "layers", *((2_000, 1) if given.small else (100_000, 3)))


def nights(given: Given) -> list[Measure]:
    """Nights with and without changes in stores of two sizes."""
    from changed_nights import measured

    folder = given.folder / ("nights-small" if given.small else "nights")
    return (
        measured(folder, (300, 900), 100, 10, 1) if given.small else measured(folder, (25_000, 100_000), 1_000, 100, 2)
    )


def load(given: Given) -> list[Measure]:
    """A first load, beside raw COPY of its tables into Kuzu."""
    from first_load import measured

    return measured(given.folder, *((3_000, 600, 2) if given.small else (500_000, 100_000, 10)))


def disk(given: Given) -> list[Measure]:
    """The disk of a store after nights with changes, beside a fresh build of the same input."""
    from disk_growth import measured

    return measured(given.folder, *((200, 100, 2, 5) if given.small else (10_000, 1_000, 60, 100)))


BENCHMARKS: dict[str, Callable[[Given], list[Measure]]] = {
    "encoding": encoding,
    "pairs": pairs,
    "chats": chats,
    "questions": questions,
    "scopes": scopes,
    "starting": starting,
    "packs": packs,
    "layers": layers,
    "nights": nights,
    "load": load,
    "disk": disk,
}
"""Every benchmark of the runner by its name."""


def facts() -> dict[str, Any]:
    """The machine, its load, and the code."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    has_bfloat16 = any("avx512_bf16" in line or "amx_bf16" in line for line in lines)
    commit = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {
        "commit": commit.stdout.strip(),
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "bfloat16": has_bfloat16,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
        "at": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def table(machine: dict[str, Any], results: dict[str, list[Measure]]) -> str:
    """The results as Markdown."""
    about = "; ".join(f"{name} {value}" for name, value in machine.items())
    lines = [f"{about}", "", "| benchmark | measured | value | unit | target | met |", "|---|---|---|---|---|---|"]
    for name, measures in results.items():
        for each in measures:
            met = {None: "", True: "yes", False: "no"}[each.is_met]
            lines.append(f"| {name} | {each.name} | {each.shown} | {each.unit} | {each.target} | {met} |")
    return "\n".join(lines) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    """Runs the benchmarks that are named, all by default."""
    parser = argparse.ArgumentParser(description="Run benchmarks and compare them with their targets.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--small", action="store_true", help="see in a minute that they run")
    parser.add_argument("--base", default=BASE, help="the commit to compare with")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--chats", type=Path, nargs="*", default=[], help="folders of labelled chats, for `encoding`")
    parser.add_argument("--stores", type=Path, help="where stores are kept; a folder that is removed if left out")
    parser.add_argument("--out", type=Path, help="where results.json and README.md are written")
    args = parser.parse_args(given)
    if unknown := sorted(set(args.names) - BENCHMARKS.keys()):
        parser.error(f"unknown: {', '.join(unknown)}; expected {', '.join(BENCHMARKS)}")
    machine = facts()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.stores or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        chosen = args.names or list(BENCHMARKS)
        wanted = Given(folder.resolve(), args.small, args.base, args.workers, tuple(args.chats))
        results = {name: BENCHMARKS[name](wanted) for name in chosen}
    shown = table(machine, results)
    sys.stdout.write(shown)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        figures = {name: [asdict(each) | {"met": each.is_met} for each in found] for name, found in results.items()}
        document = {"machine": machine, "small": args.small, "results": figures}
        (args.out / "results.json").write_text(json.dumps(document, indent=1) + "\n")
        (args.out / "README.md").write_text("# Results of run.py\n\n" + shown)


if __name__ == "__main__":
    main()
