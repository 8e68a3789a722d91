"""Arbitrary lines: nothing is raised, and each row is accepted, known or refused."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.ingest.importer import import_paths
from memstate_core.model.observation import Observation, Scope
from memstate_core.model.parts import EdgeTo, FieldValue
from memstate_core.policy.settings import Settings
from memstate_core.state.ledger.ledger import Ledger

pytestmark = pytest.mark.slow

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([*Observation.__struct_fields__, "other"])
WORDS = st.sampled_from(["user_message", "api", "2026-01-01", "9999-12-31T23:59:59-01:00", "version_field", " ", ""])
PARTS = st.dictionaries(
    st.sampled_from([*FieldValue.__struct_fields__, *EdgeTo.__struct_fields__, *Scope.__struct_fields__]),
    JSON | WORDS,
)
ROWS = st.dictionaries(KEYS, JSON | WORDS | PARTS | st.lists(PARTS, max_size=3))


def check(name: str, data: bytes, folder: str) -> None:
    path = Path(folder) / name
    path.write_bytes(data)
    ledger = Ledger(Path(folder) / "ledger")
    first = import_paths(ledger, Settings(), [path], now=NOW, run_id="r")
    assert first.read == first.accepted + first.duplicate + first.quarantined
    assert ledger.count("evidence") == first.accepted
    again = import_paths(ledger, Settings(), [path], now=NOW, run_id="r")
    assert (again.read, again.accepted, again.quarantined) == (first.read, 0, first.quarantined)
    assert ledger.count("evidence") == first.accepted


@settings(deadline=None, max_examples=150)
@given(st.lists(st.binary(max_size=60), max_size=4))
def test_any_bytes_as_lines(lines):
    with tempfile.TemporaryDirectory() as folder:
        check("a.jsonl", b"\n".join([*lines, b'{"text": "good"}']), folder)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200), st.sampled_from(["a.json", "a", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"]))
def test_any_bytes_as_a_file(data, name):
    with tempfile.TemporaryDirectory() as folder:
        check(name, data, folder)


@settings(deadline=None, max_examples=150)
@given(st.lists(ROWS, max_size=4))
def test_any_json_under_the_known_keys(rows):
    with tempfile.TemporaryDirectory() as folder:
        check("a.jsonl", b"\n".join(json.dumps(row).encode() for row in rows), folder)


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, max_size=4))
def test_any_json_in_an_array(rows):
    with tempfile.TemporaryDirectory() as folder:
        check("a.json", json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"), folder)
