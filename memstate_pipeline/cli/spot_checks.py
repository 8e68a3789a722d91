"""Spot checks of merges for `memstate review`: which to ask for, and the precision that earlier verdicts show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memstate_core.run.served_state import Served
    from memstate_core.run.store import Store

RUNS = 5
"""Runs whose spot checks are listed, the newest."""


def waiting_merges(
    store: Store, shards: Mapping[str, Served], limit: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The first merges that wait for a verdict, and the spot checks of the last runs, of all shards.

    Returns:
        Documents as `revise.merge_sides.merged_pairs` gives them; and for each run `run_id`, `at`, `merges`, `asked`,
        `answered`, `wrong`, `precision` (null until all asked for have a verdict), `low` and `high` (95 %).
    """
    from memstate_core.model.text import iso
    from memstate_core.revise.merge_precision import estimates
    from memstate_core.revise.merge_sides import merged_pairs
    from memstate_core.revise.spot_checks import merge_checks, open_checks

    probability = store.settings.policy.merge_probability
    checks = {shard: merge_checks(served.transitions, probability) for shard, served in shards.items()}
    found = [
        pair
        for shard, rows in checks.items()
        for pair in merged_pairs(store, shards[shard], open_checks(rows).head(limit))
    ]
    found.sort(key=lambda pair: (pair["skipped"], not pair["doubted"]))
    runs = [row | {"at": iso(row["at"])} for rows in checks.values() for row in estimates(rows).head(RUNS).to_dicts()]
    return found[:limit], sorted(runs, key=lambda run: str(run["at"]), reverse=True)


def check_lines(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each run whose merges have verdicts."""
    return [_line(run) for run in runs if run["answered"]]


def _line(run: Mapping[str, Any]) -> str:
    share = "" if run["precision"] is None else f"{run['precision']:.3f}, "
    interval = f"{share}between {run['low']:.3f} and {run['high']:.3f} (95 %)"
    answered = f"{run['answered']} of {run['asked']} spot checks of {run['merges']} merges"
    return f"run of {run['at'][:16]}: precision {interval}; {answered}, {run['wrong']} wrong"
