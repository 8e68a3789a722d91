"""The `memory verify` command: checks what memories note, and hands the findings over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from memstate_pipeline.cli.shared.options import Scopes, parsed_scopes
from memstate_pipeline.cli.shared.output import Json, show
from memstate_pipeline.cli.shared.terminal import cut, width


def verify(
    context: typer.Context,
    scope: Scopes = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and report; record nothing.")] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Verify memory items: citations, files, branches, commits and links.

    The settings `[verification]` say which folders and repositories may be read. What differs from the latest records
    is handed over like an observation; the next night publishes it. `memstate verify` checks the store itself.
    """
    from memstate_core.night.verification.record import found_now, hand_over_findings

    store, scopes, now = context.obj.begun_store, parsed_scopes(scope), datetime.now(UTC)
    found = [row for row in found_now(store) if scopes is None or row["scope"] in scopes]
    recorded = 0 if dry_run else hand_over_findings(store, now, scopes)
    counts = dict(sorted(Counter(row["status"] for row in found).items()))
    document = {"checked": len(found), "statuses": counts, "recorded": recorded, "findings": found}
    show(document, as_json, lambda: _lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{count} {status}" for status, count in document["statuses"].items())
    yield f"checked {document['checked']}: {counts or 'nothing to check'}; {document['recorded']} new records"
    for each in document["findings"]:
        if each["status"] != "passed":
            line = f"{each['status']} {each['check']} {each['target']} of {each['scope']}: {each['message']}"
            yield "  " + cut(line, width() - 2)
