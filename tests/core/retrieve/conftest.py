"""Small published snapshots, built as a run builds them: a real graph through `Graph.sync`, real files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec import structs

from memstate_core.embed.encoder import DIMENSION, Vectors
from memstate_core.model.graph_tables import EDGES, FIELDS, REVIEWS, REVISIONS, TOPICS, VECTORS
from memstate_core.model.ledger_tables import EDGE_TO, EVIDENCE, FIELD_VALUE, TRANSITIONS
from memstate_core.model.step_frames import ALIASES, EVIDENCE_INDEX
from memstate_core.model.terms import question_terms
from memstate_core.retrieve.index.facts_files import write_facts
from memstate_core.retrieve.index.write import write_index
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.state.fold.decisions import ARCHIVED, DETACHED, MERGED
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, VECTOR, open_graph
from memstate_core.state.ledger.ledger import Ledger
from memstate_core.state.snapshots import COMPRESSED_FILE, Manifest, Snapshot, file_digests
from tests.core.frames import filled

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


class WordEncoder:
    """A fake model: texts that share terms are close. Counts its calls."""

    model = "words"
    dimension, expected, kept_together, is_cached = DIMENSION, 0, 64, True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def questions(self, texts: Sequence[str]) -> Sequence[str]:
        return texts

    passages = questions

    def expect(self, texts: int) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in question_terms(text):
                vectors[row, int(hashlib.sha256(term.encode()).hexdigest(), 16) % DIMENSION] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


class Store:
    """The rows of a snapshot in the making."""

    def __init__(self) -> None:
        self.topics: list[dict[str, Any]] = []
        self.fields: list[dict[str, Any]] = []
        self.revisions: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self.reviews: list[dict[str, Any]] = []
        self.evidence: list[dict[str, Any]] = []
        self.aliases: list[dict[str, Any]] = []
        self.compressed: list[dict[str, Any]] = []
        self.observed: list[dict[str, Any]] | None = None
        self.decided_at = NOW
        self.decided: list[tuple[str, str, datetime, dict[str, Any]]] | None = None
        self.encoder = WordEncoder()

    def topic(self, topic_id: str, scope: str = "user:a", **given: Any) -> None:
        state = given.get("state", "active")
        defaults = {
            "title": topic_id,
            "salience": 1.0,
            "failed_salience": 0.0,
            "pinned": False,
            "created_at": START,
            "updated_at": START,
        }
        marks = {"state": state, "archived": state == "archived", "embedding_model": "words", "text_hash": topic_id}
        self.topics.append({"id": topic_id, "scope": scope} | defaults | marks | given)

    def field(self, topic_id: str, name: str, *values: tuple[int, Any], part: str = "field", **given: Any) -> None:
        """A field and its history: (day on which it became true, value), newest first."""
        if part == "field":
            own = {
                "id": f"{topic_id}/{name}",
                "topic_id": topic_id,
                "name": name,
                "field_type": "string",
                "salience": 1.0,
                "detached": False,
            }
            self.fields.append(own | given)
        self.revisions += [
            {
                "id": f"{topic_id}/{part}/{name}/{rank}", "topic_id": topic_id, "part": part, "name": name,
                "rank": rank,
                "value_json": json.dumps(value), "valid_from": day(since), "recorded_at": day(since + 1),
                "provenance": "api", "evidence_ids": [f"e-{topic_id}-{name}-{rank}"],
            }
            for rank, (since, value) in enumerate(values)
        ]  # fmt: skip

    def edge(self, from_id: str, to_id: str, kind: str = "mentions", **given: Any) -> None:
        plain = {"from_id": from_id, "to_id": to_id, "kind": kind, "evidence_ids": [], "detached": False}
        self.edges.append(plain | given)

    def says(self, topic_id: str | None, text: str, *, on: int = 0, scope: str = "user:a", **given: Any) -> str:
        """One piece of evidence; answers its id."""
        name = f"o{len(self.evidence):04d}"
        at = day(on) + timedelta(seconds=len(self.evidence))
        own = {"evidence_id": name, "observation_id": name, "topic_id": topic_id, "kind": "user_message"}
        self.evidence.append(own | {"text": text, "observed_at": at, "scope": scope, "embed": True} | given)
        return name

    def talk(self, topic_id: str, session: str, *turns: tuple[str, str], **given: Any) -> list[str]:
        """A session of (speaker, text); answers the ids of its turns."""
        return [
            self.says(topic_id, text, actor=actor, session_id=session, turn=turn, **given)
            for turn, (actor, text) in enumerate(turns)
        ]

    def frames(self) -> dict[str, Any]:
        """What `write_index` takes."""
        topics = _frame(self.topics, TOPICS)
        texts = topics.select(pl.format("{}\n{}", "title", pl.col("summary").fill_null("")))["title"].to_list()
        vectors = topics.filter(pl.col("state") != "merged").select("id", "text_hash", model="embedding_model")
        kept = self.encoder.encode(texts)[(topics["state"] != "merged").to_numpy()]
        vectors = vectors.with_columns(pl.Series("embedding", kept, dtype=VECTORS["embedding"]))
        evidence = _frame(self.evidence, EVIDENCE_INDEX | {"embed": pl.Boolean}).sort(
            "scope", "observed_at", "evidence_id"
        )
        embedded = evidence.filter("embed")
        rows = embedded.select("evidence_id", vector_row=pl.int_range(pl.len()))
        evidence = evidence.drop("vector_row").join(rows, on="evidence_id", how="left", maintain_order="left")
        return {
            "topics": topics,
            "vectors": filled(vectors, VECTORS),
            "evidence": filled(evidence, EVIDENCE_INDEX),
            "evidence_vectors": self.encoder.encode(embedded["text"].to_list()),
        }

    def publish(self, folder: Path, shard: str = "s0", *, facts: bool = True) -> Snapshot:
        folder.mkdir(parents=True)
        frames = self.frames()
        with open_graph(folder / "graph.kuzu", buffer_mib=256) as graph:
            graph.sync(TOPIC, frames["topics"])
            graph.sync(VECTOR, frames["vectors"])
            graph.sync(FIELD, _frame(self.fields, FIELDS))
            graph.sync(REVISION, _frame(self.revisions, REVISIONS))
            graph.sync(REVIEW, _frame(self.reviews, REVIEWS))
            graph.sync(EDGE, _frame(self.edges, EDGES))
            if facts:
                write_facts(folder, graph)
        write_index(folder, **frames)
        if self.aliases:
            _frame(self.aliases, ALIASES).write_parquet(folder / "aliases.parquet")
        if self.compressed:
            _frame(self.compressed, REVISIONS).write_parquet(folder / COMPRESSED_FILE)
        snapshot = Snapshot(folder, manifest(shard, file_digests(folder), self.encoder.model))
        ledger = Ledger(snapshot.home.ledger)
        self._record(ledger, snapshot.name)
        return replace(
            snapshot, manifest=structs.replace(snapshot.manifest, evidence_version=ledger.version("evidence"))
        )

    def _record(self, ledger: Ledger, name: str) -> None:
        """Writes the evidence and the decisions from which the rows follow, all decided at `decided_at`."""
        ledger.root.mkdir(exist_ok=True)
        observed = [*self._structured(), *self.evidence] if self.observed is None else self.observed
        ledger.append("evidence", evidence_rows(observed), f"draft/{name}")
        ledger.append("transitions", _frame([*self._decided(name.split("/")[0])], TRANSITIONS), f"draft/{name}")

    def _structured(self) -> Iterator[dict[str, Any]]:
        homes = {topic["id"]: topic["scope"] for topic in self.topics}
        dated = {(row["topic_id"], row["name"]) for row in self.revisions if row["part"] == "topic"}
        for topic in self.topics:
            parts = [name for name in ("title", "summary", "topic_kind") if (topic["id"], name) not in dated]
            own = {name: topic.get(name) for name in ("scope", *parts)}
            yield own | {"topic_id": topic["id"], "observed_at": topic["created_at"]}
        for row in [*self.revisions, *self.compressed]:
            if row.get("summarises"):
                continue
            value = {name: row.get(name) for name in ("name", "value_json", "why_changed", "confidence")}
            said = {"fields": [value]} if row["part"] == "field" else {row["name"]: json.loads(row["value_json"])}
            topic = {"topic_id": row["topic_id"], "scope": homes[row["topic_id"]]}
            yield topic | said | {"observed_at": row["valid_from"]}
        for edge in self.edges:
            to = {name: edge.get(name) for name in ("kind", "valid_from", "valid_until")}
            own = next(topic for topic in self.topics if topic["id"] == edge["from_id"])
            topic = {"topic_id": own["id"], "scope": own["scope"], "observed_at": own["created_at"]}
            yield topic | {"edges": [to | {"to_topic_id": edge["to_id"]}]}

    def _decided(self, shard: str) -> Iterator[dict[str, Any]]:
        homes = {topic["id"]: topic["scope"] for topic in self.topics}
        for seq, (kind, topic, at, payload) in enumerate(self._left() if self.decided is None else self.decided):
            named = {"kind": kind, "scope": homes[topic], "topic_id": topic, "payload_json": json.dumps(payload)}
            yield named | {"seq": seq, "shard": shard, "run_id": "run", "at": at, "evidence_ids": []}

    def _left(self) -> Iterator[tuple[str, str, datetime, dict[str, Any]]]:
        """What is not served was archived, merged or detached at `decided_at`."""
        for topic in self.topics:
            if topic["state"] == "archived":
                yield ARCHIVED, topic["id"], self.decided_at, {}
            if topic.get("merged_into"):
                yield MERGED, topic["id"], self.decided_at, {"survivor": topic["merged_into"]}
        for field in self.fields:
            if field["detached"]:
                yield DETACHED, field["topic_id"], self.decided_at, {"fields": [field["name"]]}
        for edge in self.edges:
            if edge["detached"]:
                named = {"to": edge["to_id"], "kind": edge["kind"]}
                yield DETACHED, edge["from_id"], self.decided_at, {"edges": [named]}


def _frame(rows: list[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema, orient="row")


def evidence_rows(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Observations as evidence (columns EVIDENCE), each with what it leaves out."""
    plain = {"kind": "explicit_memory", "provenance": "api", "imported_at": NOW, "run_id": "run"}
    value = dict.fromkeys(field.name for field in FIELD_VALUE.fields) | {"ref_given": False, "field_type": "string"}
    to = dict.fromkeys(field.name for field in EDGE_TO.fields)
    named = [
        {"evidence_id": f"s{number:04d}", "observation_id": f"s{number:04d}"}
        | plain
        | row
        | {"fields": [value | each for each in row.get("fields", [])]}
        | {"edges": [to | each for each in row.get("edges", [])]}
        for number, row in enumerate(rows)
    ]
    return _frame(named, EVIDENCE)


def manifest(shard: str, files: dict[str, str], model: str = WordEncoder.model) -> Manifest:
    return Manifest(
        schema_version=1, shard=shard, number=3, run_id="run", now=NOW, embedding_model=model, policy_hash="",
        policy={}, evidence_version=1, counts={}, state_hash="", graph_fresh_bytes=0, files=files,
    )  # fmt: skip


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture(params=[True, False], ids=["files", "graph"])
def opened(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., list[SnapshotReader]]]:
    """Publishes stores as shards and opens them, with the files of current facts and without."""
    with ExitStack() as stack:

        def publish(*stores: Store) -> list[SnapshotReader]:
            folder = tmp_path / f"store{len(list(tmp_path.iterdir()))}"
            snapshots = [
                store.publish(folder / "snapshots" / f"s{n}" / "3", f"s{n}", facts=request.param)
                for n, store in enumerate(stores)
            ]
            return [stack.enter_context(SnapshotReader(snapshot)) for snapshot in snapshots]

        yield publish
