"""Merges of an older version: listed by `review --merged`, undone by `undo --file`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from memstate_core.run.store import open_store
from tests.core.night.corrections import ACME, BOAT, CAT, begun, homes, state_hash
from tests.core.night.older_merges import merge_as_before
from tests.core.strategies import day
from tests.pipeline.conftest import Memstate, run_memstate

pytestmark = pytest.mark.slow

NEVER = {"acme": ACME, "boat": BOAT, "cat": CAT}
NOW = ("--now", "2026-01-03T00:00:00Z")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store in which an older version merged three topics of different keys, and its state hash before that."""
    store = begun(tmp_path_factory.mktemp("older") / "home")
    before = state_hash(store)
    merge_as_before(store, [(CAT, BOAT), (BOAT, ACME)], day(2))
    return store.home.root, before


@pytest.fixture
def home(made: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "home"))


@pytest.fixture
def memstate(home: Path) -> Memstate:
    return lambda *arguments, **environment: run_memstate(home, *arguments, **environment)


def published(home: Path) -> int:
    rows = open_store(home).ledger.scan("transitions").filter(pl.col("kind") == "published")
    return int(rows.select(pl.len()).collect().item())


def test_what_today_s_model_would_not_merge_is_undone_at_once(
    home: Path, memstate: Memstate, made: tuple[Path, str], tmp_path: Path
) -> None:
    listed = memstate("review", "--merged", "--json").document
    assert {merge["dropped"]["id"] for merge in listed["merged"]} == {BOAT, CAT}
    assert (listed["refused"], listed["judged"], listed["unjudged"]) == (2, 2, 0)
    assert len(memstate("review", "--merged", "--limit", "1", "--json").document["merged"]) == 1
    file, count = tmp_path / "merges.jsonl", published(home)
    file.write_text("".join(json.dumps(merge) + "\n" for merge in listed["merged"]))
    answer = memstate("undo", "--file", str(file), *NOW, "--json").document
    assert {merge["id"] for merge in answer["undone"]} == {merge["id"] for merge in listed["merged"]}
    assert answer["undone_before"] == []
    assert published(home) == count + 1
    assert (answer["state_hash"], state_hash(open_store(home))) == (made[1], made[1])
    assert homes(open_store(home)) == NEVER
    assert memstate("review", "--merged", "--json").document["judged"] == 0
    again = memstate("undo", "--file", str(file), *NOW, "--json")
    assert (again.code, again.document["undone"]) == (0, [])
    assert sorted(again.document["undone_before"]) == sorted(merge["id"] for merge in listed["merged"])
    assert published(home) == count + 1


def test_a_file_that_was_undone_in_part_is_finished(memstate: Memstate, made: tuple[Path, str], tmp_path: Path) -> None:
    """Plain ids, quoted ids and documents may stand in one file, also twice."""
    assert memstate("undo", CAT, *NOW).code == 0
    document = json.dumps({"id": BOAT, "why": "a reason"})
    (file := tmp_path / "merges").write_text("\n".join([f"  {BOAT}", "", CAT, document, json.dumps(BOAT)]))
    answer = memstate("undo", "--file", str(file), *NOW, "--json").document
    assert [merge["dropped"]["id"] for merge in answer["undone"]] == [BOAT]
    assert answer["undone_before"] == [CAT]
    assert answer["state_hash"] == made[1]


def test_a_byte_order_mark_before_the_ids_is_no_part_of_them(memstate: Memstate, tmp_path: Path) -> None:
    (file := tmp_path / "merges").write_text(f"{BOAT}\n{CAT}\n", encoding="utf-8-sig")
    answer = memstate("undo", "--file", str(file), *NOW, "--json")
    assert answer.code == 0, answer.stderr
    assert {merge["dropped"]["id"] for merge in answer.document["undone"]} == {BOAT, CAT}


def test_one_unknown_id_refuses_the_whole_file(home: Path, memstate: Memstate, tmp_path: Path) -> None:
    before = published(home)
    (file := tmp_path / "merges").write_text(f"nobody\n{BOAT}\n{ACME}\n")
    refused = memstate("undo", "--file", str(file), *NOW, "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "MergesUnknown")
    assert refused.document["error"]["names"] == ["nobody", ACME]
    assert published(home) == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{\n", "merges, line 1"),
        ('\n{"name": "x"}\n', "merges, line 2"),
        ('["x"]\n', "expected an id"),
        ('{"id": 5}\n', "the id is 5"),
        (None, "cannot be read"),
    ],
)
def test_a_line_without_an_id_is_named(content: str | None, said: str, home: Path, tmp_path: Path) -> None:
    file, before = tmp_path / "merges", published(home)
    if content is not None:
        file.write_text(content)
    answer = run_memstate(home, "undo", "--file", str(file))
    assert answer.code == 2
    assert said in answer.stderr
    assert published(home) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("undo",), "expected either ID, --file FILE or --run RUN_ID"),
        (("undo", "x", "--file", "y"), "expected either ID, --file FILE or --run RUN_ID"),
        (("review", "--merged", "--decide", "a:b=same"), "no --decide and no --file"),
        (("review", "--merged", "--file", "x"), "no --decide and no --file"),
    ],
)
def test_options_that_exclude_each_other(arguments: tuple[str, ...], said: str, made: tuple[Path, str]) -> None:
    answer = run_memstate(made[0], *arguments)
    assert answer.code == 2
    assert said in answer.stderr
