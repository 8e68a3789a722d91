"""The step that verifies: checkers look, and what differs from the latest records becomes evidence.

Invariant: findings enter the ledger as observations before the run begins that folds them, so a rebuild, a plan and a
repeated run look at no file; a night without a change adds nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import polars as pl
from msgspec import json as msgjson

from memstate_core import __version__
from memstate_core.model.forms.verification import GIVEN, MESSAGE_LIMIT, VERIFICATION, Verification
from memstate_core.model.provenance import NOTED, noted
from memstate_core.model.text import iso, iso_expr
from memstate_core.night.verification.citations import check_citations
from memstate_core.night.verification.commits import check_commits
from memstate_core.night.verification.files import check_files
from memstate_core.night.verification.finding import FINDINGS
from memstate_core.night.verification.links import check_links
from memstate_core.run.store import Store
from memstate_core.serve.inbox_writer import InboxWriter
from memstate_core.state.files import file_digest, make_folder, replace_file
from memstate_core.state.ledger.commits import commit_name

_COLUMNS = ("evidence_id", "observation_id", "scope", "topic_kind", "payload_json")
_KEY = ("scope", "target", "check")
_SAID = ("status", "message")


def found_now(store: Store) -> list[dict[str, str]]:
    """What the checkers find now (columns FINDINGS), by scope, target and check; the ledger is only read."""
    if store.ledger.version("evidence") is None:
        return []
    return found_by_checkers(store, _evidence(store)).sort(_KEY).to_dicts()


def verify_items(store: Store, now: datetime, scopes: Collection[str] | None = None) -> list[bytes]:
    """What the checkers find and the records do not say yet, as lines to hand over; the ledger is only read.

    Args:
        store: the store, whose settings say what may be looked at.
        now: the time of the check.
        scopes: only of these scopes; None for all.
    """
    if store.ledger.version("evidence") is None:
        return []
    findings = found_by_checkers(store, _evidence(store)).with_columns(pl.col("message").str.head(MESSAGE_LIMIT))
    if findings.is_empty():
        return []
    mine = pl.lit(True) if scopes is None else pl.col("scope").is_in(list(scopes))
    fresh = findings.filter(mine).join(latest_records(store), on=[*_KEY, *_SAID], how="anti")
    return [_line(row, now) for row in fresh.sort(_KEY).iter_rows(named=True)]


def hand_over_findings(store: Store, now: datetime, scopes: Collection[str] | None = None) -> int:
    """Writes what `verify_items` finds into the inbox in one durable step; returns how many records that is.

    Where only the ledger is looked at, and it is the one in which nothing was found last, it is not looked at again:
    each shard's night asks for all scopes.
    """
    with store.ledger.writing("verification of items"):
        note, mark = store.home.verified_evidence, None if scopes is not None else _mark(store)
        if mark is not None and note.exists() and note.read_text() == mark:
            return 0
        lines = verify_items(store, now, scopes)
        if mark is not None and not lines:
            make_folder(note.parent)
            replace_file(note, mark.encode())
    if lines:
        InboxWriter(store.home.inbox, store.home.inbox_key).append(b"".join(lines))
    return len(lines)


def _mark(store: Store) -> str | None:
    """What distinguishes the evidence from any other, and from what another version of memstate finds in it.

    None if files or commits are looked at as well, which change without it, or if there is no evidence.
    """
    version, allowed = store.ledger.version("evidence"), store.settings.verification
    if version is None or allowed.roots or allowed.repositories:
        return None
    commit = store.ledger.root / "evidence" / commit_name(version)
    return f"{version} {file_digest(commit)} {__version__}" if commit.exists() else None


def _evidence(store: Store) -> pl.LazyFrame:
    return store.ledger.scan("evidence").select(_COLUMNS)


def found_by_checkers(store: Store, evidence: pl.LazyFrame) -> pl.DataFrame:
    """The findings of all checkers (columns FINDINGS)."""
    allowed = store.settings.verification
    looks = bool(allowed.roots or allowed.repositories)
    notes = noted(evidence) if looks else pl.DataFrame(schema=NOTED)
    return pl.concat([
        check_citations(evidence),
        check_links(evidence),
        check_files(notes, allowed.roots, allowed.max_file_mib << 20),
        check_commits(notes, allowed.repositories),
    ])  # fmt: skip


def latest_records(store: Store) -> pl.DataFrame:
    """The latest record of each check of each item (columns FINDINGS and `checked_at`), from the ledger."""
    form = pl.col("payload_json").str.json_path_match
    rows = store.ledger.scan("evidence").filter(pl.col("topic_kind") == VERIFICATION)
    named = rows.select(
        "scope",
        "evidence_id",
        target=form("$.memory.target"),
        check=form("$.memory.check").fill_null(GIVEN),
        status=form("$.memory.status"),
        message=form("$.memory.message").fill_null(""),
        checked_at=pl.coalesce(form("$.memory.checked_at"), iso_expr(pl.col("observed_at"))),
    ).collect()
    last = named.sort("checked_at", "evidence_id").unique(_KEY, keep="last", maintain_order=True)
    return last.select(*FINDINGS, "checked_at").sort(_KEY)


def _line(finding: dict[str, str], now: datetime) -> bytes:
    kind, _, scope_id = finding.pop("scope").partition(":")
    row = {
        "scope": {"type": kind, "id": scope_id}, "observed_at": iso(now), "kind": "system_event", "actor": "memstate",
        "provenance": "revision", "memory": {"type": Verification.form(), **finding},
    }  # fmt: skip
    return msgjson.encode(row) + b"\n"
