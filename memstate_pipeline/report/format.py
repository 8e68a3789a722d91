"""Formats of the report: numbers, durations, times, and the verdict as a sentence.

Pure functions from values to text, without HTML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

COUNTS = {
    "evidence": ("observation ingested", "observations ingested"),
    "accesses": ("access counted", "accesses counted"),
    "topics_created": ("topic created", "topics created"),
    "revisions": ("revision added", "revisions added"),
    "topics_embedded": ("topic embedded", "topics embedded"),
    "merges": ("topic merged away", "topics merged away"),
    "restored": ("topic restored", "topics restored"),
    "summarised": ("history summarised", "histories summarised"),
    "detached": ("field or edge detached", "fields and edges detached"),
    "archived": ("topic archived", "topics archived"),
    "attached": ("field or edge reattached", "fields and edges reattached"),
    "expanded": ("history expanded", "histories expanded"),
    "unmerged": ("merge undone", "merges undone"),
    "judged": ("verdict recorded", "verdicts recorded"),
    "pinned": ("topic pinned", "topics pinned"),
    "unpinned": ("topic unpinned", "topics unpinned"),
    "review_ended": ("topic confirmed", "topics confirmed"),
    "readmitted": ("row readmitted", "rows readmitted"),
}
"""Singular and plural of each count, in the order of the steps; then those of corrections."""

NOT_KNOWN = "\N{EN DASH}"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a run in one line, and its changes in another.

    Attributes:
        status: `good`, `warn` (published, with something to look at) or `bad` (not published).
    """

    status: str
    title: str
    sentence: str


def verdict(summary: dict[str, Any]) -> Verdict:
    """The verdict on a run, from its summary."""
    checks = summary.get("checks") or []
    failed = [check for check in checks if not check["passed"]]
    refusing = [check["name"] for check in failed if is_refusing(check)]
    changed, served = what_changed(summary.get("counts") or {}), _still_served(summary)
    if refusing:
        cause = f"{'Check' if len(refusing) == 1 else 'Checks'} {listed(refusing)} failed"
        return Verdict("bad", "Refused to publish", f"{cause}, so {served}. Held back: {changed}.")
    if summary.get("snapshot") is None:
        return Verdict("bad", "Not published", f"This run published no snapshot; {served}.")
    notes = len(failed) + len(summary.get("warnings") or [])
    title = f"Published snapshot {summary['snapshot']}"
    sentence = f"{changed[0].upper()}{changed[1:]}."
    if not notes:
        return Verdict("good", title, sentence)
    return Verdict("warn", f"{title}, with {number(notes)} warning{'s' * (notes != 1)}", sentence)


def is_refusing(check: dict[str, Any]) -> bool:
    """Whether a run is not published if this check fails."""
    return str(check.get("severity", "error")).lower() == "error"


def what_changed(counts: dict[str, Any]) -> str:
    """The counts other than zero as one clause."""
    parts = [f"{number(n)} {counted(name, n)}" for name, n in counts.items() if name in COUNTS and n]
    return listed(parts) if parts else "nothing changed"


def counted(name: str, amount: float) -> str:
    """The noun of a count, in the singular or plural."""
    one, many = COUNTS.get(name, (name.replace("_", " "),) * 2)
    return one if amount == 1 else many


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def number(value: float | None) -> str:
    """A number with thousands separators; a fraction keeps two significant digits or two decimals."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.2g}"


def score(value: float | None) -> str:
    """A score or salience, to three decimals."""
    return NOT_KNOWN if value is None or not math.isfinite(value) else f"{value:.3f}"


def duration(seconds: float) -> str:
    """A duration, in milliseconds, seconds, minutes or hours by its size."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {rest} s"


def ago(age: timedelta) -> str:
    """How long ago something was, in the largest unit of which there are at least two."""
    seconds = max(0, int(age.total_seconds()))
    for name, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {name} ago"
    return "just now" if seconds < 2 else f"{seconds} seconds ago"


def moment(value: datetime | str | None) -> str:
    """A time in UTC to the minute; text other than ISO 8601 is unchanged."""
    if value is None:
        return NOT_KNOWN
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return str(value)
    return (at.astimezone(UTC) if at.tzinfo else at).strftime("%Y-%m-%d %H:%M UTC")


def _still_served(summary: dict[str, Any]) -> str:
    previous = summary.get("previous_snapshot")
    return "nothing is served yet" if previous is None else f"snapshot {previous} is still served"
