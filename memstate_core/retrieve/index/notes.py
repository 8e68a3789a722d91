"""What evidence notes about its workspace, branch, commit and file, as a snapshot serves it."""

from __future__ import annotations

import polars as pl

from memstate_core.model.frames import Schema, project
from memstate_core.model.provenance import NOTED, noted
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_evidence

NOTES_FILE = "notes.parquet"
NOTES_INDEX: Schema = {**NOTED, "topic_id": pl.String}
"""The notes of evidence, with the topic that holds it; sorted by scope and evidence_id."""


def notes_index(store: Store, run: Run) -> pl.DataFrame:
    """The notes of the shard's evidence (columns NOTES_INDEX)."""
    evidence = shard_evidence(store.ledger, run, ["evidence_id", "observation_id", "scope", "payload_json"])
    topics = run.table("links", EVIDENCE_TOPIC).select("evidence_id", "topic_id")
    rows = noted(evidence.lazy()).join(topics, on="evidence_id", how="left", maintain_order="left")
    return project(rows, NOTES_INDEX)
