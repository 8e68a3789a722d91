"""Commands for operators: status, doctor, verify, rebuild, report."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.shared.bound import bound_warnings
from memstate_pipeline.cli.shared.options import moment, user_name
from memstate_pipeline.cli.shared.output import Json, as_uri, show
from memstate_pipeline.cli.shared.progress import live_progress

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def status(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Show what the store serves and holds."""
    document = store_status(context.obj.existing_store)
    show(document, as_json, lambda: _status_lines(document, datetime.now(UTC)))


def _status_lines(document: Mapping[str, Any], now: datetime) -> Iterator[str]:
    from memstate_core.model.text import parse_moment
    from memstate_pipeline.report.format import ago

    if failed := document["last_failure"]:
        yield f"the last night of {failed['shard']} failed: {failed['error']['message']}"
        yield f"report: {as_uri(Path(failed['page']))}"
    run = document["last_run"]
    age = f", {run['now']}, published {ago(now - parse_moment(run['published_at']))}" if run else ""
    yield f"snapshot: {document['snapshot'] or 'none yet'}{age}"
    yield "topics: " + ", ".join(f"{count:,} {state}" for state, count in document["topics"].items())
    waiting = document["quarantined_open"]
    yield f"evidence: {_count(document['evidence'])}, {_count(document['waiting'])} not yet in a snapshot"
    still_open = f", {waiting:,} open (`memstate quarantine`)" if waiting else ""
    yield f"quarantined: {_count(document['quarantined'])}{still_open}"
    yield f"state hash: {document['state_hash'] or 'none yet'}"
    if checkout := document["checkout"]:
        unsent = ", with changes here that were not sent" if checkout["unsent"] else ""
        yield f"checkout: state {checkout['state']:,} of {checkout['url']}{unsent}"
        if absent := ", ".join(checkout["absent"]):
            yield f"not on this machine: the snapshots of {absent}; `memstate pull` fetches them"
    yield f"embedding model: {document['embedding_model'] or 'none yet'}"
    yield "sizes: " + ", ".join(f"{kind} {size / 1048576:,.1f} MiB" for kind, size in document["sizes"].items())
    yield from (f"warning: {warning}" for warning in document["warnings"])


def _count(rows: int | None) -> str:
    return "unknown" if rows is None else f"{rows:,}"


def store_status(store: Store) -> dict[str, Any]:
    """The JSON of `memstate status`; before the first snapshot its values are null and zero."""
    import msgspec

    from memstate_core.ingest.inbox import folder_warnings
    from memstate_core.model.text import iso
    from memstate_core.state.absent import absent_shards
    from memstate_core.state.current import served_where_sound
    from memstate_core.state.sizes import sizes
    from memstate_core.state.snapshots import combined_state_hash
    from memstate_core.storage.checkout_state import checkout_state
    from memstate_pipeline.report.latest import last_failure

    served, damaged = served_where_sound(store.home, store.shards)
    damaged.require_any(None, [snapshot.manifest.shard for snapshot in served])
    manifests = [snapshot.manifest for snapshot in served]
    states = ("active", "detached", "archived", "merged")
    newest = max(manifests, key=lambda manifest: manifest.now, default=None)
    counts, unreadable = _ledger_counts(store)
    checkout = checkout_state(store.home, store.settings.store.url)
    evidence, absent = counts["evidence"], absent_shards(store.home)
    published = min((snapshot.written_at() for snapshot in served), default=None)
    last = newest and {"run_id": newest.run_id, "now": iso(newest.now), "published_at": published and iso(published)}
    return {
        "snapshot": ",".join(snapshot.name for snapshot in served) or None,
        "state_hash": combined_state_hash({m.shard: m.state_hash for m in manifests}) if manifests else None,
        "topics": {state: sum(manifest.counts[state] for manifest in manifests) for state in states},
        "evidence": evidence,
        "waiting": None if evidence is None else evidence - sum(each.counts["evidence"] for each in manifests),
        "quarantined": counts["quarantine"],
        "quarantined_open": counts["open"],
        "embedding_model": newest and newest.embedding_model,
        "last_run": last,
        "last_failure": last_failure(store),
        "home": str(store.home.root),
        "checkout": checkout and msgspec.to_builtins(checkout),
        "sizes": sizes(store.home),
        "warnings": [
            *(error.message for error in damaged.errors.values()),
            *unreadable,
            *folder_warnings(store.home),
            *bound_warnings(snapshot for snapshot in served if snapshot.manifest.shard not in absent),
        ],
    }


def _ledger_counts(store: Store) -> tuple[dict[str, int | None], list[str]]:
    """Rows of evidence and of the quarantine, None where the ledger cannot be read, and warnings that say so."""
    from memstate_core.ingest.quarantine import open_count
    from memstate_core.night.ledger_audit import UNREADABLE

    wanted: dict[str, Callable[[], int]] = {
        "evidence": lambda: store.ledger.count("evidence"),
        "quarantine": lambda: store.ledger.count("quarantine"),
        "open": lambda: open_count(store.ledger),
    }
    counts: dict[str, int | None] = {}
    for name, count in wanted.items():
        try:
            counts[name] = count()
        except UNREADABLE:
            counts[name] = None
    warning = "the ledger cannot be read; what is served still answers. `memstate verify` names the damage"
    return counts, [warning] * any(count is None for count in counts.values())


def doctor(
    context: typer.Context,
    topic: Annotated[
        str | None, typer.Option(metavar="ID", help="Explain this topic (id or topic_key) instead.")
    ] = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="With --topic: the time to explain, ISO 8601. Default: the machine's clock."),
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Check the installation and the store.

    Exits with 1 if a check fails. With --topic, explains what governs a topic and what happens to it next.
    """
    from memstate_pipeline.doctor.examine import examine
    from memstate_pipeline.doctor.explain import explain

    if topic is not None:
        facts = explain(context.obj.store, topic, moment(now))
        heading = f"{facts['title']}  [{facts['id']}]  {facts['scope']}, {facts['state']}, at {facts['now']}"
        show(facts, as_json, lambda: [heading, *facts["lines"]])
        return
    findings = examine(context.obj.home, datetime.now(UTC))
    show(
        [finding.__dict__ for finding in findings],
        as_json,
        lambda: [f"{_mark(finding.ok)}  {finding.name}: {finding.detail}" for finding in findings],
    )
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def verify(
    context: typer.Context,
    backup: Annotated[
        str | None,
        typer.Option(metavar="DIR|URL", help="Verify every file of the backups in this folder or storage instead."),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Verify the other kept snapshots, too; with --backup, restore each backup into a temporary folder and "
            "verify it there.",
        ),
    ] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Verify the served snapshot, or backups.

    Checks the ledger, the manifest, file digests, the index, the conditions C1 to C6, and that the ledger gives the
    same state and the same index. Exits with 1 on a failure.
    """
    from memstate_core.night.backup.verify import verify_backups
    from memstate_core.night.checkout.pull import fetch_absent
    from memstate_core.night.verify import verify_store
    from memstate_core.run.store import open_store
    from memstate_pipeline.cli.shared.verified import verified

    store: Store = context.obj.store

    def whole() -> Mapping[str, Any]:
        fetch_absent(store)
        return verify_store(open_store(store.home.root), deep=deep)

    with live_progress():
        verdicts = verified(store.home, whole) if backup is None else verify_backups(backup, deep=deep)
    document = [{"snapshot": name, **verdict.__dict__} for name, found in verdicts.items() for verdict in found]
    passed = all(row["passed"] for row in document)
    show({"passed": passed, "verdicts": document}, as_json, lambda: map(_verdict_line, document))
    if not passed:
        raise typer.Exit(1)


def _verdict_line(row: Mapping[str, Any]) -> str:
    return f"{_mark(row['passed'])}  {row['snapshot']}  {row['name']}" + f"  {row['detail']}" * bool(row["detail"])


def _mark(passed: bool) -> str:
    return "ok  " if passed else "FAIL"


def rebuild(
    context: typer.Context,
    new_chain: Annotated[
        bool,
        typer.Option(
            "--new-chain",
            help="The ledger's chain alone is lost or cut: prove the ledger by its fold, and begin the chain anew.",
        ),
    ] = False,
    why: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Reason for --new-chain, which stays on record for good.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Rebuild the graph from the ledger.

    The result is published if it has the same state hash as the served snapshot. --new-chain changes nothing unless
    all else that `memstate verify` compares is sound; verify, doctor and backups show its record from then on.
    """
    from datetime import UTC, datetime

    from memstate_core.model.progress import tracked
    from memstate_core.night.new_chain import begin_chain_anew
    from memstate_core.night.rebuild import rebuild as rebuild_shard
    from memstate_core.state.current import current_snapshot
    from memstate_core.state.snapshots import combined_state_hash
    from memstate_pipeline.report.run_report import report_interrupted
    from memstate_pipeline.writers import holding

    if new_chain != bool(why and why.strip()):
        raise typer.BadParameter("--new-chain and --why TEXT belong together")
    store: Store = context.obj.begun_store
    begun = None
    with live_progress(doing="rebuild"), holding(store, f"process {os.getpid()} (memstate rebuild)"):
        if new_chain:
            begun = begin_chain_anew(store, datetime.now(UTC), user_name(), str(why).strip())
        for shard in store.shards:
            report_interrupted(store, shard)
        shards = tracked(store.shards, "rebuild", len(store.shards), "shards")
        hashes = {shard: rebuild_shard(store, shard, f"rebuild-{uuid.uuid4()}").state_hash for shard in shards}
    names = [snapshot.name for shard in store.shards if (snapshot := current_snapshot(store.home, shard))]
    state, served = combined_state_hash(hashes), ",".join(names)
    document = {"state_hash": state, "snapshot": served, "same_state": True}
    lines = [f"rebuilt and published {served}: state hash {state}, unchanged"]
    if begun is not None:
        document["chain"] = begun.text
        lines.insert(0, f"the chain of the ledger was {begun.text}")
    show(document, as_json, lambda: lines)


def report(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Show the last run's counts and the path of its page.

    A shard whose last night failed comes first. With --json, prints the whole report.
    """
    from memstate_core.model.errors import StoreNotFound
    from memstate_pipeline.report.latest import last_failure, latest_report

    store: Store = context.obj.store
    failed = last_failure(store)
    page = latest_report(store.home.reports) if failed is None else Path(failed["page"])
    if page is None:
        raise StoreNotFound(str(store.home.root), "no report")
    document = json.loads(page.with_suffix(".json").read_text())
    counts = [f"  {count:>9,}  {name.replace('_', ' ')}" for name, count in document["counts"].items()]
    ended = f"failed: {failed['error']['message']}" if failed else f"at {document['now']}"
    show(document, as_json, lambda: [f"run {document['run_id']} {ended}", *counts, as_uri(page)])
