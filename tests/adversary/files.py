"""Hostile files in the inbox: each is read, refused in part, or failed and named; none stops the others."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from memstate_core.ingest.inbox import import_inbox
from tests.adversary.attack import a_store
from tests.core.clocks import SETTLED

NOW = datetime(2026, 5, 1, tzinfo=UTC)
GOOD = b'{"title": "Yard", "observed_at": "2026-01-01"}\n'
Made = tuple[bytes, bytes]
"""The name of a file, and its content."""


def _parquet(table: pa.Table) -> bytes:
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def _zipped(members: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


_FAR = pa.table({"text": ["x"], "observed_at": pa.array([2**62], pa.timestamp("ms"))})
_WIDE = pa.table({"text": ["x"], "confidence": pa.array([1], pa.decimal256(60, 2))})


def _repeated(rows: int) -> bytes:
    """A Parquet file of less than a kilobyte, with rows of a megabyte that share one value."""
    written = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * (1 << 20)]))
    pq.write_table(pa.table({"text": column}), written, compression="zstd", store_schema=False)
    return written.getvalue()


FILES: tuple[Callable[[Random], Made], ...] = (
    lambda random: (b"bytes.jsonl", random.randbytes(random.randrange(4000))),
    lambda random: (b"bytes.json", random.randbytes(200)),
    lambda random: (b"bytes.parquet", b"PAR1" + random.randbytes(200) + b"PAR1"),
    lambda random: (b"bytes.zip", b"PK\x03\x04" + random.randbytes(300)),
    lambda random: (b"bytes.jsonl.zst", b"\x28\xb5\x2f\xfd" + random.randbytes(60)),
    lambda random: (b"torn.jsonl.gz", gzip.compress(GOOD * 500)[: random.randrange(20, 60)]),
    lambda random: (b"bomb.jsonl.gz", gzip.compress(b"x" * random.randrange(1 << 20, 20 << 20))),
    lambda random: (b"zeros.zip", _zipped({f"{n}.json": b"0" * (1 << 20) for n in range(random.randrange(20))})),
    lambda _: (b"paths.zip", _zipped({"../../escaped.jsonl": GOOD, "/etc/x.jsonl": GOOD, "a\\..\\b.jsonl": GOOD})),
    lambda _: (b"nested.zip", _zipped({"inner.zip": _zipped({"conversations.json": b"[]"})})),
    lambda random: (b"deep.json", b"[" * (depth := random.randrange(10, 100_000)) + b"]" * depth),
    lambda random: (b"deep.jsonl", b'{"text":' * (depth := random.randrange(10, 5_000)) + b"1" + b"}" * depth),
    lambda _: (b"nan.jsonl", b'{"text": "x", "fields": [{"name": "a", "value": NaN}]}\n' + GOOD),
    lambda _: (b"huge-number.jsonl", b'{"text": "x", "turn": ' + b"9" * 5000 + b"}\n"),
    lambda _: (b"names\xff\xfe.jsonl", GOOD),
    lambda _: (b"utf16.jsonl", GOOD.decode().encode("utf-16")),
    lambda _: (b"nul.jsonl", b"\x00" * 5000 + GOOD),
    lambda _: (b"far.parquet", _parquet(_FAR)),
    lambda _: (b"wide.parquet", _parquet(_WIDE)),
    lambda random: (b"bomb.parquet", _repeated(random.choice([20, 10_000_000]))),
    lambda _: (b"chatgpt.json", json.dumps([{"mapping": {"a": {"parent": "a", "children": ["a"]}}}] * 3).encode()),
    lambda random: (
        b"turns.jsonl",
        json.dumps({"messages": [{"role": random.choice("xyz"), "content": [{}]}]}).encode(),
    ),
    lambda random: (b"chat.txt", ("[31/12/20, 99:99:99] A: x\n" * random.randrange(300)).encode()),
    lambda _: (b"empty.jsonl", b""),
    lambda _: (b"-rf *;$(x).jsonl", GOOD),
)


def attack(random: Random, folder: Path, count: int = 8) -> int:
    """Some hostile files and a good one in an inbox: nothing is raised, and the good one is read."""
    store = a_store(folder / "home")
    inbox = store.home.inbox
    inbox.mkdir(parents=True)
    secret = folder / "secret.jsonl"
    secret.write_bytes(b'{"title": "Secret"}\n')
    (inbox / "link.jsonl").symlink_to(secret)
    names = []
    for make in random.sample(FILES, count):
        name, content = make(random)
        (inbox / os.fsdecode(name)).write_bytes(content)
        names.append(name)
    (inbox / "good.jsonl").write_bytes(GOOD)
    report = import_inbox(store.home, store.ledger, store.settings, now=NOW, run_id="attack", clock=SETTLED)
    evidence = store.ledger.scan("evidence").collect()
    assert "Yard" in evidence["title"].to_list(), names
    assert "Secret" not in evidence["title"].to_list(), "a symbolic link was followed"
    assert evidence.height == report.accepted, names
    assert report.read == report.accepted + report.duplicate + report.quarantined, names
    left = [path.name for path in inbox.iterdir() if path.is_file() and not path.is_symlink()]
    assert not left, f"read neither nor failed: {left}"
    assert not list(folder.glob("**/escaped.jsonl"))
    assert store.ledger.scan("quarantine").select(pl.len()).collect().item() == report.quarantined
    return count
