"""Commands for whoever is on call: status, doctor, verify, report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstate_pipeline.cli.bound import bound_warnings
from memstate_pipeline.cli.output import Json, as_uri, show
from memstate_pipeline.cli.write import moment

if TYPE_CHECKING:
    from memstate_core.run.store import Store


def status(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Show what the store serves and holds."""
    document = store_status(context.obj.store)
    show(document, as_json, lambda: _status_lines(document))


def _status_lines(document: dict[str, Any]) -> list[str]:
    run = document["last_run"]
    return [
        f"snapshot {document['snapshot'] or 'none yet'}" + (f" of {run['now']}" if run else ""),
        "topics: " + ", ".join(f"{count:,} {state}" for state, count in document["topics"].items()),
        f"evidence: {document['evidence']:,}, of which {document['waiting']:,} wait for the next run; "
        f"quarantined: {document['quarantined']:,}",
        f"state {document['state_hash'] or 'none yet'}",
        *(f"warning: {warning}" for warning in document["warnings"]),
    ]


def store_status(store: Store) -> dict[str, Any]:
    """The JSON of `memstate status`; a store that has published nothing yet has nulls and zeros."""
    from memstate_core.model.text import iso
    from memstate_core.state.snapshots import combined_state_hash, current_snapshot

    served = [snapshot for shard in store.shards if (snapshot := current_snapshot(store.home, shard))]
    manifests = [snapshot.manifest for snapshot in served]
    states = ("active", "detached", "archived", "merged")
    newest = max(manifests, key=lambda manifest: manifest.now, default=None)
    evidence = store.ledger.count("evidence")
    return {
        "snapshot": ",".join(snapshot.name for snapshot in served) or None,
        "state_hash": combined_state_hash({m.shard: m.state_hash for m in manifests}) if manifests else None,
        "topics": {state: sum(manifest.counts[state] for manifest in manifests) for state in states},
        "evidence": evidence,
        "waiting": evidence - sum(manifest.counts["evidence"] for manifest in manifests),
        "quarantined": store.ledger.count("quarantine"),
        "last_run": None if newest is None else {"run_id": newest.run_id, "now": iso(newest.now)},
        "home": str(store.home.root),
        "warnings": bound_warnings(served),
    }


def doctor(
    context: typer.Context,
    topic: Annotated[str | None, typer.Option(metavar="ID", help="Explain what governs this topic instead.")] = None,
    now: Annotated[
        str | None, typer.Option(help="The time to explain a topic for, ISO 8601; the machine's clock without it.")
    ] = None,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Check the installation and the home; exit 1 when something is wrong. With --topic, explain a topic's fate."""
    from memstate_pipeline.doctor import examine, explain

    if topic is not None:
        facts = explain(context.obj.store, topic, moment(now))
        heading = f"{facts['title']}  [{facts['id']}]  {facts['scope']}, {facts['state']}, at {facts['now']}"
        show(facts, as_json, lambda: [heading, *facts["lines"]])
        return
    findings = examine(context.obj.home)
    show(
        [finding.__dict__ for finding in findings],
        as_json,
        lambda: [f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}" for finding in findings],
    )
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def verify(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Check what is served: digests, index, C1 to C5, and the ledger folded again; exit 1 on a failure."""
    from memstate_core.night.verify import verify as verify_snapshot
    from memstate_core.state.snapshots import served

    store: Store = context.obj.store
    verdicts = {snapshot.name: verify_snapshot(store, snapshot) for snapshot in served(store.home, store.shards)}
    document = [{"snapshot": name, **verdict.__dict__} for name, found in verdicts.items() for verdict in found]
    lines = [
        f"{'ok  ' if row['passed'] else 'FAIL'}  {row['snapshot']}  {row['name']}"
        + f"  {row['detail']}" * (not row["passed"])
        for row in document
    ]
    show({"passed": all(row["passed"] for row in document), "verdicts": document}, as_json, lambda: lines)
    if not all(row["passed"] for row in document):
        raise typer.Exit(1)


def report(context: typer.Context, as_json: Annotated[bool, Json] = False) -> None:
    """Show where the last run's page is; with --json, what it says."""
    from memstate_core.model.errors import StoreNotFound
    from memstate_pipeline.report.page import latest_report

    page = latest_report(context.obj.store.home.reports)
    if page is None:
        raise StoreNotFound(str(context.obj.store.home.root), "no report")
    document = json.loads(page.with_suffix(".json").read_text())
    counts = [f"  {count:>9,}  {name.replace('_', ' ')}" for name, count in document["counts"].items()]
    show(document, as_json, lambda: [f"run {document['run_id']} at {document['now']}", *counts, as_uri(page)])
