"""Columns of what each asset sets, and the columns that these are made of, for the Dagster UI.

Tables of the graph have several writers in a night. A column of a graph table is named `Table.column`, and belongs to
every asset that decides it; a test compares this with what the steps of real nights change. Merges and summaries of
histories make rows anew, whose other columns are not listed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import dagster as dg
import polars as pl

from memstate_core.model import column_meanings
from memstate_core.model.frames import Schema
from memstate_core.model.ledger_tables import EVIDENCE
from memstate_core.model.step_frames import EVIDENCE_INDEX, PAIRS, PLACEMENTS
from memstate_core.state.graph import EDGE, FIELD, REVIEW, REVISION, TOPIC, VECTOR, Table

Sources = tuple[str, ...]
"""Columns of earlier assets, as `asset:column`."""

GRAPH = (TOPIC, FIELD, REVISION, EDGE, VECTOR, REVIEW)
FOLDED = (TOPIC, FIELD, REVISION, EDGE)
"""The tables that a fold of the ledger writes."""
_TEXT: Sources = ("evidence:title", "evidence:text")
_SUMMARY: Sources = ("evidence:summary", "evidence:text")
_TIME: Sources = ("evidence:observed_at",)
_TOPIC: Sources = ("placements:topic_id",)
_FIELDS: Sources = ("evidence:fields",)
_EDGES: Sources = ("evidence:edges",)
_ROW: Sources = ("placements:evidence_id",)

_PLACED: dict[str, Sources] = {
    "evidence_id": ("evidence:evidence_id",),
    "scope": ("evidence:scope",),
    "topic_id": tuple(f"evidence:{name}" for name in ("topic_id", "topic_key", "title", "text", "session_id", "turn")),
    "operation": ("evidence:placement",),
    "given": ("evidence:topic_id", "evidence:topic_key"),
    "reason": _TEXT,
    "score": _TEXT,
}
_FOLDED: dict[str, Sources] = {
    "Topic.id": _TOPIC,
    "Topic.scope": ("placements:scope",),
    "Topic.title": _TEXT,
    "Topic.summary": _SUMMARY,
    "Topic.topic_kind": ("evidence:topic_kind",),
    "Topic.text_hash": (*_TEXT, "evidence:summary"),
    **dict.fromkeys((f"Topic.{name}" for name in ("strength", "failed_strength", "half_life_days")), _TIME),
    **dict.fromkeys((f"Topic.{name}" for name in ("reinforced_at", "created_at", "updated_at")), _TIME),
    "Field.topic_id": _TOPIC,
    **dict.fromkeys((f"Field.{name}" for name in FIELD.schema if name not in ("topic_id", "detached")), _FIELDS),
    **dict.fromkeys((f"Field.{name}" for name in ("strength", "reinforced_at", "half_life_days")), _TIME),
    **dict.fromkeys((f"Revision.{name}" for name in REVISION.schema), ("evidence:title", *_FIELDS)),
    "Revision.topic_id": _TOPIC,
    "Revision.provenance": ("evidence:provenance",),
    "Revision.recorded_at": ("evidence:imported_at",),
    "Revision.evidence_ids": _ROW,
    **dict.fromkeys((f"Related.{name}" for name in EDGE.schema if name != "detached"), _EDGES),
    "Related.from_id": (*_TOPIC, *_EDGES),
    "Related.evidence_ids": _ROW,
}
_VECTORS: dict[str, Sources] = {
    "Vector.id": ("topics:Topic.id",),
    "Vector.text_hash": ("topics:Topic.text_hash",),
    "Vector.model": (),
    "Vector.embedding": ("topics:Topic.title", "topics:Topic.summary"),
    "Topic.embedding_model": (),
}
_PAIRS: dict[str, Sources] = {
    "a": ("topics:Topic.id",),
    "b": ("topics:Topic.id",),
    "scope": ("topics:Topic.scope",),
    **dict.fromkeys(
        ("probability", "weight", "value", "pair_kind", "confirmed_by", "band", "features", "reading"),
        (
            "topics:Topic.title",
            "topics:Topic.summary",
            "topics:Revision.value_json",
            "topic_embeddings:Vector.embedding",
        ),
    ),
}
_SALIENCES: dict[str, Sources] = {
    f"{table}.{salience}": tuple(f"topics:{table}.{name}" for name in (strength, "reinforced_at", "half_life_days"))
    for table, salience, strength in (
        ("Topic", "salience", "strength"),
        ("Topic", "failed_salience", "failed_strength"),
        ("Field", "salience", "strength"),
    )
}
_FORGOTTEN: dict[str, Sources] = {
    "Topic.state": ("salience:Topic.salience",),
    "Topic.archived": ("salience:Topic.salience",),
    "Field.detached": ("salience:Field.salience",),
    "Related.detached": ("salience:Topic.salience",),
    "Revision.summarises": ("salience:Field.salience",),
}


def columns(tables: Iterable[Table]) -> Schema:
    """The columns of tables of the graph, each named with its table."""
    return {f"{table.name}.{name}": kind for table in tables for name, kind in table.schema.items()}


def _sources() -> dict[str, tuple[Schema, dict[str, Sources]]]:
    graph = columns(GRAPH)
    folded = columns(FOLDED)
    likely: Sources = ("duplicate_pairs:probability", "duplicate_pairs:band")
    merged = dict.fromkeys(("Topic.state", "Topic.merged_into"), likely)
    sources: Sources = ("topics:Related.kind", "topics:Topic.title", "merges:Topic.merged_into")
    review = dict.fromkeys(columns([REVIEW]), sources)
    found: dict[str, tuple[Schema, dict[str, Sources]]] = {
        "evidence": (EVIDENCE, {}),
        "placements": (PLACEMENTS, _PLACED),
        "topics": (folded, _FOLDED),
        "topic_embeddings": (_of(graph, _VECTORS), _VECTORS),
        "duplicate_pairs": (PAIRS, _PAIRS),
        "merges": (_of(graph, merged), merged),
        "dependency_review": (columns([REVIEW]), review),
        "salience": (_of(graph, _SALIENCES), _SALIENCES),
        "forgetting": (_of(graph, _FORGOTTEN), _FORGOTTEN),
    }
    writers: dict[str, Sources] = {name: _writers(found, name) for name in graph}
    index = {f"evidence.{name}": kind for name, kind in EVIDENCE_INDEX.items()}
    served: dict[str, Sources] = {
        name: (f"evidence:{name.partition('.')[2]}",) for name in index if name != "evidence.vector_row"
    }
    served["evidence.topic_id"] = ("placements:topic_id", "merges:Topic.merged_into")
    served |= dict.fromkeys((f"evidence.{name}" for name in ("tool", "status", "path")), ("evidence:payload_json",))
    found["snapshot"] = ({**graph, **index}, {**writers, **served})
    return found


def _of(schema: Schema, names: Mapping[str, Sources]) -> Schema:
    return {name: kind for name, kind in schema.items() if name in names}


def _writers(found: Mapping[str, tuple[Schema, dict[str, Sources]]], name: str) -> Sources:
    """The assets that decide a column of the graph."""
    return tuple(f"{asset}:{name}" for asset, (schema, _) in found.items() if name in schema)


_COLUMNS = _sources()
SCHEMAS: dict[str, Schema] = {asset: schema for asset, (schema, _) in _COLUMNS.items()}
"""The columns that each asset sets."""
SOURCES: dict[str, dict[str, Sources]] = {asset: sources for asset, (_, sources) in _COLUMNS.items()}
"""The columns that each of them is made of; none where a column comes from recorded decisions or from a model."""


def column_schema(asset: str) -> dict[str, dg.TableSchema]:
    """The columns that an asset sets, as metadata of its definition."""
    if asset not in SCHEMAS:
        return {}
    meanings = _meanings(asset)
    named = [dg.TableColumn(name, _named(kind), meanings[name]) for name, kind in SCHEMAS[asset].items()]
    return {"dagster/column_schema": dg.TableSchema(named)}


def _meanings(asset: str) -> dict[str, str]:
    """What the columns of an asset mean."""
    graph = {f"{table}.{name}": text for table, known in column_meanings.GRAPH.items() for name, text in known.items()}
    served = {f"evidence.{name}": text for name, text in column_meanings.SERVED_EVIDENCE.items()}
    own = {
        "evidence": column_meanings.LEDGER["evidence"],
        "placements": column_meanings.PLACEMENTS,
        "duplicate_pairs": column_meanings.PAIRS,
    }
    return {**graph, **served, **own.get(asset, {})}


def _named(kind: pl.DataType | type[pl.DataType]) -> str:
    """The type of a column as the reference names it, such as `Datetime` and `List(Struct)`."""
    name = re.sub(r"Struct\(\{.*\}\)", "Struct", str(kind))
    return "Datetime" if name.startswith("Datetime") else name


def column_lineage(asset: str) -> dict[str, dg.TableColumnLineage]:
    """What these columns are made of, as metadata of a materialization, which is where Dagster looks for it."""
    found = {
        column: [
            dg.TableColumnDep(asset_key=name, column_name=of) for name, _, of in (each.partition(":") for each in given)
        ]
        for column, given in SOURCES.get(asset, {}).items()
        if given
    }
    return {"dagster/column_lineage": dg.TableColumnLineage(found)} if found else {}
