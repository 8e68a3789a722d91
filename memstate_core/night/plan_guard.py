"""Guards runs that must match a plan (law L5).

A run is refused before it reads anything if the state has changed, and before it publishes if it decided otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import json as msgjson
from msgspec import structs, to_builtins

from memstate_core import __version__
from memstate_core.ingest.accesses.journal_segments import waiting_segments
from memstate_core.ingest.dumps import dumps_in, shown
from memstate_core.model.errors import PlanStale
from memstate_core.model.text import iso
from memstate_core.night.plan_file import Action, Base, Facts, Plan, actions, decisions_of
from memstate_core.policy.settings import Settings
from memstate_core.run.run import PLAN_FILE, Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_accesses, shard_evidence
from memstate_core.state.current import current_snapshot
from memstate_core.state.fold.decisions import SET_ASIDE
from memstate_core.state.graph import open_graph
from memstate_core.state.state_hash import state_hash

_MISSING = "missing"
_PLAIN = ("memstate", "evidence_version", "transitions_version", "accesses_version")


def facts_of(store: Store) -> Facts:
    """What the next run of a store depends on; hold the store's lock if it may change meanwhile."""
    inbox = store.home.inbox
    return Facts(
        memstate=__version__,
        base={shard: _base(store, shard) for shard in store.shards},
        evidence_version=store.ledger.version("evidence"),
        transitions_version=store.ledger.version("transitions"),
        accesses_version=store.ledger.version("accesses"),
        inbox=_digests(dumps_in(inbox) if inbox.is_dir() else []),
        accesses=_digests(waiting_segments(store.home.accesses)),
        settings=_settings_digest(store.settings),
        settings_values=store.settings.model_dump(mode="json"),
    )


def require_unmoved(store: Store, plan: Plan, shard: str) -> None:
    """Compares the store with the state that a plan was made for, all shards at once.

    Called for the first shard only, under the store's lock and before anything is read, since the run of the first
    shard changes the ledger.

    Raises:
        PlanStale: names every difference.
    """
    if shard != store.shards[0]:
        return
    planned = Facts(**{name: getattr(plan, name) for name in Facts.__struct_fields__})
    differences = _differences(_flat(facts_of(store)), _flat(planned))
    if differences:
        raise PlanStale(plan.name, shard, differences)


def expect(store: Store, run: Run, plan: Plan) -> None:
    """Stores the plan with a shard's run, whose result must match it before it publishes.

    The run sets aside the rows that the plan sets aside before its first step, since the run of the plan found them
    only by failing.

    Raises:
        PlanStale: the plan sets aside rows that the shard does not have.
    """
    own = [action for action in plan.actions if action.shard == run.facts.shard]
    (run.scratch / PLAN_FILE).write_bytes(msgjson.encode(structs.replace(plan, actions=own)))
    earlier = run.decisions(SET_ASIDE)
    planned = decisions_of(action for action in own if action.kind == SET_ASIDE)
    ids = pl.col("evidence_ids").list.join(" ")
    added = planned.join(earlier, on=ids, how="anti")
    evidence = shard_evidence(store.ledger, run, ["evidence_id", "scope"]).select("scope", id="evidence_id")
    have = pl.concat([evidence, shard_accesses(store.ledger, run).select("scope", id="access_id")])
    named = added.select("scope", id="evidence_ids").explode("id")
    unknown = named.join(have, on=["id", "scope"], how="anti", nulls_equal=True)["id"]
    if unknown.len():
        problems = [f"row {name} to set aside: found none in its scope" for name in unknown]
        raise PlanStale(plan.name, run.facts.shard, problems)
    if added.height:
        run.decide(SET_ASIDE, pl.concat([earlier, added]))


def require_planned(run: Run) -> None:
    """Compares a run's decisions with its plan, if it has one: logical time, actions, state hash.

    Called right before the run publishes. Inbox and journal have been read by then; their content stays in the
    ledger, for the next run.

    Raises:
        PlanStale: names what differs; the run must not publish.
    """
    if not run.is_planned:
        return
    plan, shard = msgjson.decode((run.scratch / PLAN_FILE).read_bytes(), type=Plan), run.facts.shard
    with open_graph(run.graph, read_only=True) as graph:
        found = {"logical time": iso(run.facts.now), "state hash": state_hash(graph)}
    expected = {"logical time": iso(plan.now), "state hash": plan.result[shard].state_hash}
    different = _different_actions(actions(run.decisions(), shard), plan.actions)
    problems = _differences(found, expected) + different
    if problems:
        raise PlanStale(plan.name, shard, [f"what the run did differs from what was planned, {p}" for p in problems])


def _different_actions(found: list[Action], planned: list[Action]) -> list[str]:
    if found == planned:
        return []
    did, should = (Counter(msgjson.encode(action, order="sorted") for action in some) for some in (found, planned))
    more, fewer = list((did - should).elements()), list((should - did).elements())
    differences = [(more, "not in the plan"), (fewer, "planned and not taken")]
    return [f"actions {words}: {len(some)}, first {some[0].decode()}" for some, words in differences if some] or [
        "the order of actions"
    ]


def _differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    names = sorted(found.keys() | expected.keys())
    pairs = [(name, found.get(name, _MISSING), expected.get(name, _MISSING)) for name in names]
    return [f"{name}: found {_word(is_)}, expected {_word(was)}" for name, is_, was in pairs if is_ != was]


def _word(value: Any) -> str:
    return "nothing" if value is None else str(value)


def _flat(facts: Facts) -> dict[str, Any]:
    """Facts by readable names, with the settings instead of their digest."""
    document = to_builtins(facts)
    held = {"snapshot": "snapshot of", "state_hash": "state of"}
    base = {f"{held[key]} {shard}": v for shard, pair in document["base"].items() for key, v in pair.items()}
    waiting = {f"{place}/{name}": v for place in ("inbox", "accesses") for name, v in document[place].items()}
    sections = document["settings_values"].items()
    settings = {f"setting {section}.{key}": value for section, keys in sections for key, value in keys.items()}
    rest = {name.replace("_", " "): document[name] for name in _PLAIN}
    return rest | base | waiting | settings


def _base(store: Store, shard: str) -> Base:
    served = current_snapshot(store.home, shard)
    return Base(
        snapshot=None if served is None else served.name,
        state_hash=None if served is None else served.manifest.state_hash,
    )


def _settings_digest(settings: Settings) -> str:
    canonical = json.dumps(settings.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _digests(files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each file by its name."""
    return {shown(Path(path.name)): _file_digest(path) for path in files}


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
