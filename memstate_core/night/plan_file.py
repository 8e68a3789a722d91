"""A plan: every action of a future run, and the state that it was made for, as a file.

The file is one JSON document. `plan_hash` is the SHA-256 of the rest in canonical form: UTF-8, keys
sorted, no white space. It contains no run id, path or machine time, so the same state planned for the
same logical time gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from msgspec import Meta, Struct, ValidationError, convert, structs, to_builtins
from msgspec import json as msgjson

from memstate_core.model.errors import PlanInvalid
from memstate_core.model.frames import project
from memstate_core.model.ledger_tables import DECISION
from memstate_core.state.files import replace_file
from memstate_core.state.fold.decisions import ACCEPTED, PUBLISHED

FORMAT = "memstate-plan/1"


class Action(Struct, frozen=True, kw_only=True):
    """A decision that a run records as a transition; the payload is decoded."""

    shard: str
    kind: str
    scope: str | None
    topic_id: str | None
    payload: Any
    evidence_ids: list[str]
    reason: str | None


class Base(Struct, frozen=True, kw_only=True):
    """The served snapshot of a shard, `<shard>/<n>`, and its state hash; both null before the first one."""

    snapshot: str | None
    state_hash: str | None


class Facts(Struct, frozen=True, kw_only=True):
    """What a run depends on besides its logical time.

    Attributes:
        memstate: the version of memstate.
        base: what each shard serves.
        evidence_version: version of the evidence table, null where there is none.
        transitions_version: version of the transitions table, null where there is none.
        accesses_version: version of the accesses table, null where there is none.
        inbox: SHA-256 of each dump that waits in the inbox, by its name.
        accesses: SHA-256 of each segment of the access journal that waits to be collected, by its name.
        settings: SHA-256 of the effective settings in canonical JSON.
        settings_values: the effective settings, by section and key.
    """

    memstate: str
    base: dict[str, Base]
    evidence_version: int | None
    transitions_version: int | None
    accesses_version: int | None
    inbox: dict[str, str]
    accesses: dict[str, str]
    settings: str
    settings_values: dict[str, dict[str, Any]]


class Result(Struct, frozen=True, kw_only=True):
    """The result of a shard's run: state hash, the counts of `maintain`, expected false merges, and failed gates.

    `gates` has what was found and expected, by the name of the gate; a gate that would refuse the night is among them.
    """

    state_hash: str
    counts: dict[str, int | float]
    expected_false_merges: int | float | None
    gates: dict[str, str] = {}


class Plan(Facts, frozen=True, kw_only=True):
    """A plan, as stored in its file.

    Attributes:
        plan_hash: SHA-256 of the canonical form of everything else.
        now: the logical time of the run, UTC.
        result: the result of each shard's run.
        summary: how many actions there are of each kind.
        titles: titles of the topics that are merged, archived or restored, by id, after the run.
        actions: in the order of the run; consecutive actions of one kind are a set, sorted.
    """

    now: Annotated[datetime, Meta(tz=True)]
    result: dict[str, Result]
    summary: dict[str, int]
    titles: dict[str, str]
    actions: list[Action]
    format: str = FORMAT
    plan_hash: str = ""

    @property
    def name(self) -> str:
        """Its short name, also in file names: the first eight digits of its hash."""
        return self.plan_hash[:8]


def actions(decisions: pl.DataFrame, shard: str) -> list[Action]:
    """The decisions of a shard's run (at least columns DECISION) as actions, in canonical order.

    The publication record is left out: it holds run id, record times and digests of files, which differ between
    equal runs. The state is compared by its hash and counts. Accepted gates change no state and are left out too.
    """
    rows = project(decisions.filter(~pl.col("kind").is_in([PUBLISHED, ACCEPTED])), DECISION).with_columns(
        pl.col("evidence_ids").fill_null([]).list.sort(), _block=pl.col("kind").rle_id(), shard=pl.lit(shard)
    )
    order = ["_block", "scope", "topic_id", "payload_json", "reason", pl.col("evidence_ids").list.join(" ")]
    ordered = rows.sort(order, maintain_order=True).drop("_block")
    payloads = [None if text is None else msgjson.decode(text) for text in ordered["payload_json"]]
    found = convert(ordered.drop("payload_json").with_columns(payload=pl.lit(None)).to_dicts(), list[Action])
    return [structs.replace(action, payload=payload) for action, payload in zip(found, payloads, strict=True)]


def decisions_of(planned: Iterable[Action]) -> pl.DataFrame:
    """Actions of one shard as decisions (columns DECISION), the reverse of `actions`."""
    rows = [structs.asdict(action) | {"payload_json": msgjson.encode(action.payload).decode()} for action in planned]
    return pl.DataFrame([{name: row[name] for name in DECISION} for row in rows], DECISION)


def sealed(plan: Plan) -> Plan:
    """The plan with its own hash."""
    return structs.replace(plan, plan_hash=digest(to_builtins(plan)))


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of a document without its `plan_hash`."""
    rest = {name: value for name, value in document.items() if name != "plan_hash"}
    return hashlib.sha256(_canonical(rest)).hexdigest()


def write_plan(plan: Plan, path: Path) -> None:
    """Writes a plan as indented JSON, replacing an existing file; missing folders are created."""
    document = to_builtins(plan)
    head = {name: document.pop(name) for name in ("format", "plan_hash", "now")}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgjson.format(json.dumps(head | document, ensure_ascii=False).encode(), indent=1) + b"\n")


def read_plan(path: Path) -> Plan:
    """The plan in a file.

    Raises:
        PlanInvalid: it cannot be read, is not a plan of this format, or was changed after it was written.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise PlanInvalid(str(path), f"it cannot be read: {error}") from None
    named = document.get("format") if isinstance(document, dict) else None
    if named != FORMAT:
        raise PlanInvalid(str(path), f"its format is {named!r}, expected {FORMAT!r}")
    found, stated_hash = digest(document), document.get("plan_hash")
    if found != stated_hash:
        raise PlanInvalid(
            str(path), f"its content has SHA-256 {found}, but its plan_hash is {stated_hash}: it was changed"
        )
    try:
        return convert(document, Plan)
    except ValidationError as error:
        raise PlanInvalid(str(path), str(error)) from None


def _canonical(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
