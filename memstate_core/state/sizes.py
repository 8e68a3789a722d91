"""How large the parts of a home are."""

from __future__ import annotations

from pathlib import Path

from memstate_core.state.home import Home


def sizes(home: Home) -> dict[str, int]:
    """The bytes of what a home keeps, by kind."""
    kept = {
        "ledger": home.ledger,
        "snapshots": home.root / "snapshots",
        "processed": home.processed,
        "failed": home.failed,
        "journal": home.accesses,
        "questions": home.recorded_questions,
        "reports": home.reports,
        "runs": home.dagster,
        "caches": home.cache.parent,
    }
    return {kind: size_of(path) for kind, path in kept.items()}


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; 0 if it does not exist."""
    paths = path.rglob("*") if path.is_dir() else [path]
    return sum(each.lstat().st_size for each in paths if each.is_file() and not each.is_symlink())
