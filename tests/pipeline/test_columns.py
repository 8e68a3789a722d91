"""Columns and their lineage in the Dagster UI are those of the tables, and of what the steps of real nights change."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.model import column_meanings as meant
from memstate_core.model.frames import empty
from memstate_core.model.step_frames import EVIDENCE_INDEX, PAIRS, PLACEMENTS
from memstate_core.model.text import parse_moment
from memstate_core.run.run import Run
from memstate_core.run.store import open_store
from memstate_core.state.graph import Table, open_graph
from memstate_core.state.home import Home
from memstate_core.state.ledger.ledger import TABLES
from memstate_pipeline.columns import GRAPH, SCHEMAS, SOURCES, column_schema, columns
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.run import maintain

SETTINGS = """[store]
niceness = 0
[policy]
topic_count_soft_limit = 0
salience_half_life_days = 2.0
half_life_growth_max = 1.0
max_field_history = 3
summary_keep_revisions = 1
"""
Tables = dict[str, pl.DataFrame]
MADE_ANEW = {"merges": ("topics", "topic_embeddings"), "forgetting": ("topics",)}
"""Steps that make rows anew, and the assets whose columns these have."""
NIGHTS = ("2026-04-06T02:00:00Z", "2026-04-07T02:00:00Z", "2026-06-08T02:00:00Z")


def test_every_column_of_the_graph_has_a_writer_and_is_served() -> None:
    written = {name for asset, schema in SCHEMAS.items() if asset != "snapshot" for name in schema}
    assert set(columns(GRAPH)) <= written
    assert set(columns(GRAPH)) <= set(SCHEMAS["snapshot"])


def test_every_column_of_every_asset_has_a_meaning_and_no_meaning_is_left_over() -> None:
    shown: dict[str, dg.TableSchema] = {asset: column_schema(asset)["dagster/column_schema"] for asset in SCHEMAS}
    assert [column.name for schema in shown.values() for column in schema.columns if not column.description] == []
    found = {column.name: column.description for column in shown["snapshot"].columns}
    assert found["Revision.rank"] == "place in the history; 0 is current"
    assert (found["Topic.id"], found["evidence.topic_id"]) == ("the topic", "its topic, after merges")
    assert {name: [*known] for name, known in meant.LEDGER.items()} == {
        name: [*known] for name, known in TABLES.items()
    }
    assert {name: {*known} for name, known in meant.GRAPH.items()} == {each.name: {*each.schema} for each in GRAPH}
    assert (meant.PLACEMENTS.keys(), meant.PAIRS.keys()) == (PLACEMENTS.keys(), PAIRS.keys())
    assert meant.SERVED_EVIDENCE.keys() == EVIDENCE_INDEX.keys()


def test_lineage_names_columns_that_exist_of_assets_that_came_before(tmp_path: Path) -> None:
    order = list(SCHEMAS)
    for asset, sources in SOURCES.items():
        assert set(sources) <= set(SCHEMAS[asset]), asset
        for given in sources.values():
            for name, _, column in (source.partition(":") for source in given):
                assert order.index(name) < order.index(asset), (asset, name)
                assert column in SCHEMAS[name], (asset, name, column)
    keys = {spec.key.to_user_string() for spec in build_defs(tmp_path).resolve_all_asset_specs()}
    assert keys == {*SCHEMAS, "maintenance_report"}


@pytest.mark.slow
@pytest.mark.usefixtures("no_settings")
def test_the_steps_of_real_nights_change_only_the_columns_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is read after each step and compared, row by row, with what the step before left."""
    (tmp_path / "memstate.toml").write_text(SETTINGS)
    store, seen, keep = open_store(tmp_path), list[tuple[str, Tables]](), Run.keep

    def kept(run: Run, step: str, *given: Any) -> None:
        keep(run, step, *given)
        if step not in ("evidence", "placements", "snapshot"):
            seen.append((step, _read(run.graph)))

    monkeypatch.setattr(Run, "keep", kept)
    for day, rows in enumerate(_days()):
        path = tmp_path / f"day-{day}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        now = parse_moment(NIGHTS[day])
        report = import_paths(store.ledger, store.settings, [path], now=now, run_id=f"import-{day}")
        assert report.accepted == len(rows), report
        maintain(store, now)
    changed, before = defaultdict[str, set[str]](set), {table.name: empty(table.schema) for table in GRAPH}
    for step, now in seen:
        for table in GRAPH:
            changed[step] |= _changed(table, before[table.name], now[table.name])
        before = now
    assert {"merges", "forgetting", "salience", "topic_embeddings"} <= {
        step for step, names in changed.items() if names
    }
    for step, names in changed.items():
        named = {column for asset in (step, *MADE_ANEW.get(step, ())) for column in SCHEMAS[asset]}
        assert names <= named, (step, names - named)
    _check_materialized(Home(tmp_path))


def _check_materialized(home: Home) -> None:
    """A night records the lineage, which the UI reads from the newest materialization."""
    with dagster_instance(home) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("topics"))
    assert event is not None
    assert event.asset_materialization is not None
    lineage = event.asset_materialization.metadata["dagster/column_lineage"]
    assert isinstance(lineage, dg.TableColumnLineageMetadataValue)
    found = lineage.column_lineage.deps_by_column["Topic.title"]
    named = {(each.asset_key.to_user_string(), each.column_name) for each in found}
    assert named == {("evidence", "title"), ("evidence", "text")}


def _days() -> list[list[dict[str, Any]]]:
    twin = {"summary": "Rolls of tape for the bench", "fields": [{"name": "ean", "value": "4006381333931"}]}
    first = [
        _row("tape-1", "Masking tape 50 mm", 1, **twin),
        _row("tape-2", "MASKING TAPE 50 mm", 2, **twin),
        *(_row("gate", "Yard gate", n, fields=[{"name": "code", "value": str(n)}]) for n in range(3, 8)),
        *(_row(f"t{n}", f"Plant number {n}", n, edges=[{"kind": "part_of", "to_topic_key": "gate"}]) for n in range(9)),
    ]
    return [
        first,
        [_row("gate", "Yard gate", 9, fields=[{"name": "code", "value": "99"}])],
        [_row("new", "New bench", 9)],
    ]


def _row(key: str, title: str, minute: int, **more: Any) -> dict[str, Any]:
    at = f"2026-04-05T10:{minute:02}:00Z"
    topic = {"placement": "new_topic"} if key.startswith("tape") else {"topic_key": key}
    named = {"observation_id": f"{key}/{minute}", "title": title, "observed_at": at} | topic
    return named | {"scope": {"type": "user", "id": "ines"}} | more


def _read(graph: Path) -> Tables:
    with open_graph(graph, read_only=True) as opened:
        return {table.name: opened.read(table) for table in GRAPH}


def _changed(table: Table, before: pl.DataFrame, now: pl.DataFrame) -> set[str]:
    """The columns of a table whose values differ, and those that new rows have values in."""
    key = list(table.key)
    came = now.join(before, on=key, how="anti", nulls_equal=True)
    both = now.join(before, on=key, how="inner", suffix="_before")
    found = {name for name in came.columns if came.height and _has_values(came[name])}
    found |= {name for name in now.columns if name not in key and not both[name].equals(both[f"{name}_before"])}
    return {f"{table.name}.{name}" for name in found}


def _has_values(column: pl.Series) -> bool:
    """Whether a column of new rows was set; false and 0 are how it begins."""
    begins = {pl.Boolean: False, pl.Float64: 0.0}.get(type(column.dtype))
    return bool((column.drop_nulls() != begins).any()) if begins is not None else column.null_count() < column.len()
