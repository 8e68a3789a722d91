"""The benchmarks of duplicates: their counts are correct, and they run on a small set of their own."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from itertools import combinations
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1]


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scoring(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return _script("scoring")


def test_groups_are_judged_by_all_their_pairs(scoring: ModuleType) -> None:
    groups = np.array([0, 0, 0, 1, 1, 2])
    truth = scoring.pair_keys(np.array([1, 3, 5]), np.array([0, 4, 0]), 6)
    result = scoring.Labels.complete(truth, 6).judged_groups(groups)
    assert (result.pairs, result.true, result.all_true, result.unlabelled) == (4, 2, 3, 0)
    assert (result.precision, result.recall) == (2 / 4, 2 / 3)
    assert result.f1 == pytest.approx(2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3))


def test_pairs_and_the_groups_that_they_connect(scoring: ModuleType) -> None:
    a, b = np.array([2, 0, 0]), np.array([1, 1, 1])
    assert scoring.pair_keys(a, b, 4).tolist() == [1, 6]
    groups = scoring.components(a, b, 4)
    assert [groups[i] == groups[j] for i, j in combinations(range(4), 2)] == [True, True, False, True, False, False]
    assert [part.tolist() for part in scoring.pairs_of(groups)] == [[0, 0, 1], [1, 2, 2]]


def test_unlabelled_pairs_count_neither_for_nor_against(scoring: ModuleType) -> None:
    """Repeats 0-1 (true), 0-2 and 1-2 (unlabelled), 3-4 (unlabelled); 2-3 is false."""
    labels = scoring.Labels(scoring.pair_keys(np.array([0]), np.array([1]), 5), np.array([0, 0, 0, 1, 1]))
    a, b = np.array([1, 0, 2, 3]), np.array([0, 2, 3, 4])
    assert labels.unlabelled(a, b).tolist() == [False, True, False, True]
    assert labels.judged(a, b) == scoring.Result(2, 1, 1, 2)
    assert labels.judged_groups(np.array([0, 0, 0, 0, 1])) == scoring.Result(4, 1, 1, 2)


def test_groups_are_judged_as_their_listed_pairs_are(scoring: ModuleType) -> None:
    rng = np.random.default_rng(5)
    truth = scoring.pair_keys(*scoring.pairs_of(rng.integers(12, size=40)), 40)
    labels = scoring.Labels(truth, rng.integers(6, size=40))
    groups = rng.integers(5, size=40)
    assert labels.judged_groups(groups) == labels.judged(*scoring.pairs_of(groups))


def test_a_ranking_gives_the_recall_at_a_precision(scoring: ModuleType) -> None:
    labels = scoring.Labels.complete(scoring.pair_keys(np.array([0, 0, 0, 0]), np.array([1, 2, 3, 4]), 6), 6)
    others, scores = np.array([5, 1, 2, 3, 4]), np.array([0.5, 0.9, 0.9, 0.5, 0.1])
    ranking = scoring.Ranking.of(np.zeros(5, int), others, scores, labels)
    assert ranking.recall_at(1) == 0.5
    assert ranking.recall_at(0.8) == 1
    assert ranking.recall_at(0.75) == 1
    wrong = scoring.Ranking.of(np.array([1, 0]), np.array([2, 1]), np.array([0.9, 0.2]), labels)
    assert (wrong.recall_at(0.95), wrong.recall_at(0.5)) == (0, 0.25)


def test_made_topics_follow_from_the_seed_and_carry_their_duplicates(scoring: ModuleType) -> None:
    del scoring
    growth = _script("growth")
    one, truth = growth.made_corpus(400, 7)
    same, _ = growth.made_corpus(400, 7)
    other, _ = growth.made_corpus(400, 8)
    assert one.topics.equals(same.topics)
    assert np.array_equal(one.vectors, same.vectors)
    assert not one.topics.equals(other.topics)
    a, b = np.divmod(truth, 400)
    near = np.einsum("ij,ij->i", one.vectors[a], one.vectors[b])
    assert len(truth) == 20
    assert near.min() > np.cos(np.radians(46))
    assert near.max() < np.cos(np.radians(19))


def test_a_size_is_measured_in_all_its_parts(scoring: ModuleType) -> None:
    del scoring
    growth = _script("growth")
    measured = growth.measure(400, 7)
    assert all(measured.seconds[part] > 0 for part in growth.PARTS)
    assert sum(measured.seconds.values()) <= measured.total
    assert measured.result.recall > 0.5
    assert growth.row(measured, None).count("|") == 14


@pytest.mark.slow
def test_methods_are_compared_on_the_same_records(
    scoring: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del scoring
    titles = ["Bent copper kettle", "Bent copper kettle", "A ferry to the islands", "Notes on wool", "Notes on glass"]
    rows = [
        {"observation_id": f"x{i}", "observed_at": "2026-01-01T00:00:00Z", "title": title, "summary": f"{title}."}
        for i, title in enumerate(titles)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "observations.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "pairs.csv").write_text("x1,x0\n")
    _script("deduplication").main([str(tmp_path)])
    output = capsys.readouterr().out
    assert "5 records, 1 true pairs" in output
    assert "5 texts encoded" not in output
    assert "4 texts encoded" in output
    lines_of = [line for line in output.splitlines() if line.startswith(("| TF-IDF", "| same title"))]
    assert len(lines_of) == 4
    assert all("| 1 | 1.000 | 1.000 | 1.000 |" in line for line in lines_of)
    assert "hold 1 of 1 true pairs" in output
    assert "| share true | 1.000 |" in output


def _directory(folder: Path) -> Path:
    """Eight records of two sources, of which the first two and the next two are one thing each."""
    titles = ["Bent copper kettle"] * 2 + ["A ferry to the islands"] * 2 + ["Wool", "Glass", "Salt", "Tin roofs"]
    rows = [
        {"observation_id": f"x{i}", "observed_at": "2026-01-01T00:00:00Z", "title": title, "source_uri": "ab"[i % 2]}
        for i, title in enumerate(titles)
    ]
    (folder / "observations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pairs.csv").write_text("x1,x0\nx3,x2\n")
    return folder


@pytest.mark.slow
def test_samples_of_records_keep_what_belongs_to_them(scoring: ModuleType, tmp_path: Path) -> None:
    from labelled import read

    from memstate_core.embed.encoder import Encoder

    small = _script("small_scopes")
    labelled = read(_directory(tmp_path), Encoder(), tmp_path / "embeddings.sqlite")
    some = small.sample(labelled, np.array([1, 2, 3, 7]))
    assert some.corpus.topics["id"].to_list() == ["x1", "x2", "x3", "x7"]
    assert some.corpus.sources.rows() == [(0, "b"), (1, "a"), (2, "b"), (3, "b")]
    assert np.array_equal(some.corpus.vectors[3], labelled.corpus.vectors[7])
    assert some.labels.truth.tolist() == scoring.pair_keys(np.array([1]), np.array([2]), 4).tolist()
    assert small.sourced(some, "a").corpus.sources.rows() == [(row, "a") for row in range(4)]
    assert small.sourced(some, "") is some


@pytest.mark.slow
def test_small_scopes_are_searched_under_several_sources(
    scoring: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del scoring
    given = [str(_directory(tmp_path)), "--cache", str(tmp_path / "cache.sqlite"), "--sizes", "8", "--samples", "1"]
    _script("small_scopes").main(given)
    output = capsys.readouterr().out
    assert f"| {tmp_path.name} | 2 | 2 true, 0 false | 2 true, 0 false | 2 true, 0 false |" in output
    assert "| 8 | " in output


@pytest.mark.slow
def test_a_search_is_timed_in_several_processes(scoring: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    del scoring
    _script("scope_processes").main(["--scopes", "3", "--topics", "40", "--rounds", "1"])
    output = capsys.readouterr().out
    assert all(f"| {way} | " in output for way in ("one process", "2 processes", "joblib"))
