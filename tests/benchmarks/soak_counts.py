"""The final counts of a soak: acknowledged writes and accesses, those on disk, those in the ledger."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from memstate_core.ingest.accesses.journal_segments import COMPLETE, OPEN
from memstate_core.state.home import Home

Access = tuple[str, str, bool]
"""The identity of an access: topic, time, whether it failed."""


def violations(
    sent: set[str], written: set[str], held: Mapping[str, int],
    accesses: Mapping[Access, int], flushed: Mapping[Access, int], recorded: Mapping[Access, int],
) -> list[str]:  # fmt: skip
    """The violations, one sentence each; empty if there are none.

    Args:
        sent: ids of observations that were sent.
        written: those of them that were acknowledged.
        held: how often the ledger holds each id.
        accesses: feedback that was acknowledged.
        flushed: how often each access is in the journal on disk.
        recorded: how often the ledger holds each access.
    """
    lost = sorted(written - held.keys())
    twice = sorted(each for each, times in held.items() if times > 1)
    strange = sorted(held.keys() - sent)
    found = [
        (lost, "acknowledged writes are not in the ledger"),
        (twice, "writes are in the ledger more than once"),
        (strange, "writes in the ledger were never sent"),
        (_missing(accesses, recorded), "acknowledged accesses are not in the ledger"),
        (_missing(flushed, recorded), "flushed accesses are not in the ledger"),
        (_missing(recorded, flushed), "accesses are in the ledger more often than in the journal"),
    ]
    return [f"{len(each)} {what}, first {each[0]}" for each, what in found if each]


def _missing(wanted: Mapping[Access, int], there: Mapping[Access, int]) -> list[Access]:
    return sorted(access for access, times in wanted.items() if there.get(access, 0) < times)


def broken_segments(seen: Mapping[str, bytes], last: Mapping[str, bytes]) -> list[str]:
    """Segments that were on disk and have disappeared, or whose beginning has changed."""
    gone = sorted(name for name, content in seen.items() if not last.get(name, b"").startswith(content))
    return [f"{len(gone)} segments of the journal are gone or were changed, first {gone[0]}"] if gone else []


def accesses_in(segments: Mapping[str, bytes]) -> Counter[Access]:
    """The accesses in complete lines of the journal."""
    lines = [line for content in segments.values() for line in content.split(b"\n")[:-1] if line]
    records = [json.loads(line) for line in lines]
    return Counter(
        (each["topic_id"], each["at"], each.get("failed", False)) for each in records if "segment" not in each
    )


def journal(home: Home) -> dict[str, bytes]:
    """Every segment by its name: those that wait, and the collected ones."""
    found: dict[str, bytes] = {}
    for folder in (home.accesses, home.collected):  # in this order, since a run moves them that way
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.suffix in (COMPLETE, OPEN):
                try:
                    content = path.read_bytes()
                except FileNotFoundError:
                    continue
                name = json.loads(content.partition(b"\n")[0])["segment"] if content.count(b"\n") else path.stem
                found[name] = content
    return found
