"""The benchmark generator: the same arguments give the same bytes, and the dump has the promised shape."""

from __future__ import annotations

import gzip
import io
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
import zstandard

from memstate_core.model.observation import Observation

BENCHMARKS = Path(__file__).parents[1]
SMALL = ("--observations", "3000", "--topics", "400", "--scopes", "3")
END = datetime(2026, 2, 1, tzinfo=UTC)
PYTHON_TYPES = {
    "string": str, "date": str, "datetime": str, "int": int, "float": float, "bool": bool, "list": list, "json": dict
}  # fmt: skip


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it is outside of any package, beside the modules that it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield import_module("generate")


@pytest.fixture(scope="module")
def observed(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[Observation]:
    return decode(written(script, tmp_path_factory.mktemp("dump") / "o.jsonl", *SMALL))


@pytest.fixture(scope="module")
def turns(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[Observation]:
    return decode(written(script, tmp_path_factory.mktemp("dump") / "t.jsonl", "--turns", "1000", "--scopes", "3"))


def written(script: ModuleType, path: Path, *arguments: str) -> bytes:
    script.main([*arguments, str(path)])
    return path.read_bytes()


def decode(dump: bytes) -> list[Observation]:
    return [msgspec.json.decode(line, type=Observation) for line in dump.splitlines()]


def name(observation: Observation) -> str:
    return observation.topic_id or observation.topic_key or ""


@pytest.mark.parametrize("mode", [SMALL, ("--turns", "500")])
def test_the_seed_decides_every_byte(script: ModuleType, tmp_path: Path, mode: tuple[str, ...]) -> None:
    first = written(script, tmp_path / "a.jsonl", *mode, "--seed", "1")
    assert written(script, tmp_path / "b.jsonl", *mode, "--seed", "1") == first
    assert written(script, tmp_path / "c.jsonl", *mode, "--seed", "2") != first


def test_chunks_leave_no_trace(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(script, tmp_path / "a.jsonl", *SMALL)
    monkeypatch.setattr(script, "CHUNK_ROWS", 701)
    assert written(script, tmp_path / "b.jsonl", *SMALL) == whole


def test_the_name_of_the_file_chooses_its_compression(script: ModuleType, tmp_path: Path) -> None:
    plain = written(script, tmp_path / "a.jsonl", *SMALL)
    assert gzip.decompress(written(script, tmp_path / "a.jsonl.gz", *SMALL)) == plain
    packed = io.BytesIO(written(script, tmp_path / "a.jsonl.zst", *SMALL))
    assert zstandard.ZstdDecompressor().stream_reader(packed).read() == plain


def test_compressed_files_are_equal_too(script: ModuleType, tmp_path: Path) -> None:
    for ending in ("gz", "zst"):
        first = written(script, tmp_path / f"a.jsonl.{ending}", *SMALL)
        assert written(script, tmp_path / f"b.jsonl.{ending}", *SMALL) == first


def test_rows_topics_and_scopes_are_as_many_as_asked_for(observed: list[Observation]) -> None:
    assert len(observed) == 3000
    assert len({o.observation_id for o in observed}) == 3000
    assert len({name(o) for o in observed}) == 400
    assert {o.scope.id for o in observed if o.scope} == {"bench-0", "bench-1", "bench-2"}


def test_few_topics_get_most_of_the_attention(observed: list[Observation]) -> None:
    counts = sorted(Counter(name(o) for o in observed).values(), reverse=True)
    assert sum(counts[:40]) > 0.4 * len(observed)
    assert counts[-1] == 1


def test_titles_distinguish_topics_except_for_twins(observed: list[Observation]) -> None:
    keyed = {(o.topic_key, o.title) for o in observed if o.topic_key}
    assert len({title for _, title in keyed}) == len(keyed)
    twins = {(o.title or "").lower() for o in observed if o.topic_id}
    assert twins
    assert twins <= {(title or "").lower() for _, title in keyed}


def test_one_to_three_fields_fit_their_types(observed: list[Observation]) -> None:
    assert {len(o.fields) for o in observed} == {1, 2, 3}
    fields = [field for o in observed for field in o.fields]
    assert {field.field_type for field in fields} == set(PYTHON_TYPES)
    assert all(type(field.value) is PYTHON_TYPES[field.field_type or ""] for field in fields)
    assert all(len({field.name for field in o.fields}) == len(o.fields) for o in observed)


def test_values_change_over_time_and_repeat_in_between(observed: list[Observation]) -> None:
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for observation in sorted(observed, key=lambda o: o.observed_at or ""):
        for field in observation.fields:
            values[name(observation), field.name].append(repr(field.value))
    pairs = [a == b for history in values.values() for a, b in pairwise(history)]
    assert 0.2 < sum(pairs) / len(pairs) < 0.95


def test_summaries_change_with_the_seasons(observed: list[Observation]) -> None:
    summaries: dict[str, set[str | None]] = defaultdict(set)
    for observation in observed:
        summaries[name(observation)].add(observation.summary)
    assert {len(texts) for texts in summaries.values()} >= {1, 2}
    assert max(len(texts) for texts in summaries.values()) <= 3


def test_edges_of_both_sorts_stay_within_the_scope(observed: list[Observation]) -> None:
    scope_of = {name(o): o.scope for o in observed}
    edges = [(o, edge) for o in observed for edge in o.edges]
    assert 0.1 * len(observed) < len(edges) < 0.3 * len(observed)
    assert {"part_of", "has_detail", "mentions"} <= {edge.kind for _, edge in edges}
    for observation, edge in edges:
        target = edge.to_topic_id or edge.to_topic_key or ""
        assert scope_of[target] == observation.scope
        assert target != name(observation)


def test_time_runs_over_180_days_and_some_rows_are_late(observed: list[Observation]) -> None:
    moments = [datetime.fromisoformat(o.observed_at or "") for o in observed]
    assert END - timedelta(days=180) <= min(moments) <= max(moments) < END
    assert max(moments) - min(moments) > timedelta(days=170)
    late = sum(before > after + timedelta(days=1) for before, after in pairwise(moments))
    assert 0.01 < late / len(moments) < 0.05


def test_turns_form_sessions_that_alternate_speakers(turns: list[Observation]) -> None:
    assert len(turns) == 1000
    assert len({turn.observation_id for turn in turns}) == 1000
    for before, after in pairwise(turns):
        if before.session_id == after.session_id:
            assert after.turn == (before.turn or 0) + 1
            assert (before.observed_at or "") < (after.observed_at or "")
            assert before.kind != after.kind


def test_sessions_have_about_thirty_turns_and_one_scope(turns: list[Observation]) -> None:
    lengths = list(Counter(turn.session_id for turn in turns).values())
    assert all(20 <= length <= 40 for length in lengths[:-1])
    scopes = {(turn.session_id, turn.scope.id) for turn in turns if turn.scope}
    assert len(scopes) == len(lengths)
    assert all(turn.text and turn.title is None for turn in turns)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--observations", "5", "--topics", "6"),
        ("--turns", "0"),
        ("--topics", "0"),
        ("--scopes", "0"),
        ("--seed", "-1"),
    ],
)
def test_impossible_sizes_are_refused(script: ModuleType, tmp_path: Path, wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        script.main([*wrong, str(tmp_path / "a.jsonl")])
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize("few", ["1", "2"])
def test_the_smallest_dump_has_one_topic(script: ModuleType, tmp_path: Path, few: str) -> None:
    (first, *_) = decode(written(script, tmp_path / "a.jsonl", "--observations", few, "--topics", "1"))
    assert first.fields
    assert not first.edges
