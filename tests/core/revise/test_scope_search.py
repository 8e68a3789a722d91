"""Scopes are searched in several processes with the same results, where that saves time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memstate_core.model.frames import empty
from memstate_core.model.ledger_tables import DECISION
from memstate_core.model.step_frames import EVIDENCE_TOPIC
from memstate_core.revise import scope_search
from memstate_core.revise.constraints import constraints
from memstate_core.revise.matching.answers import Answers
from memstate_core.revise.scope_search import ScopeToSearch, search_processes, search_scope
from memstate_core.revise.thresholds import PairThresholds
from memstate_core.run.store import open_store
from memstate_core.state.process.parallel import mapped
from tests.core.revise.matching.corpora import corpus
from tests.core.revise.matching.families import crowd, family, memories, store
from tests.core.revise.nights import night, record


def scopes(count: int) -> list[ScopeToSearch]:
    """Scopes of some families, of memories and of unrelated topics, some written twice."""
    families = [[*family("number", at % 6, 12), *memories()[: 9 * at], *crowd(60, at)] for at in range(count)]
    made = [store(topics, "typo") for topics in families]
    parts = [corpus([{"id": f"t{row:05}", **topic} for row, topic in enumerate(each.topics)]) for each in made]
    return [ScopeToSearch(f"user:{at}", part, None, Answers.none()) for at, part in enumerate(parts)]


@pytest.mark.slow
def test_another_process_finds_the_same_to_the_last_bit() -> None:
    limits = constraints(empty(DECISION), empty(EVIDENCE_TOPIC))
    search = partial(search_scope, limits, PairThresholds(0.9, 0.2))
    wanted = scopes(6)
    here, beside = (list(mapped(search, wanted, processes)) for processes in (1, 3))
    for one, other in zip(here, beside, strict=True):
        (found, *thresholds), (again, *same) = one, other
        assert np.array_equal(found.scored.probability, again.scored.probability)
        assert np.array_equal(found.expected, again.expected)
        assert np.array_equal(found.groups, again.groups)
        assert found.model == again.model
        assert all(np.array_equal(a, b) for a, b in zip(thresholds, same, strict=True))


@pytest.mark.parametrize(
    ("settings", "topics", "expected"),
    [
        ({}, 200, 3),  # as many as there are cores
        ({}, 50, 1),  # too little to do
        ({"search_processes": 5}, 200, 5),
        ({"search_processes": 1}, 200, 1),
        ({"nights_at_once": 2}, 200, 1),  # other nights use the cores
    ],
)
def test_as_many_processes_search_as_the_cores_or_the_settings_say(
    settings: dict[str, int], topics: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_search, "cores", lambda: 3)
    lines = [f"{name} = {value}" for name, value in settings.items()]
    (tmp_path / "memstate.toml").write_text("\n".join(["[store]", *lines]))
    wanted = [ScopeToSearch("user:a", corpus([{}] * topics), None, Answers.none())] * 50
    assert search_processes(open_store(tmp_path, {}), wanted) == expected


@pytest.mark.slow
def test_a_night_in_several_processes_merges_what_one_process_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [{name: topic.get(name) for name in ("title", "summary")} for topic in store(memories(), "same").topics]
    users = {"a": texts, "b": [*texts, *texts[:9]], "c": texts}  # the second one counts as large
    scoped = [text | {"scope": {"type": "user", "id": name}} for name, said in users.items() for text in said]
    topics = {f"t{at}": topic for at, topic in enumerate(scoped)}
    alone, together = (open_store(tmp_path / name, {}) for name in ("alone", "together"))
    asked = list[tuple[int, int]]()

    def counted(work: Any, wanted: Any, processes: int) -> Any:
        asked.append((len(wanted), processes))
        return mapped(work, wanted, processes)

    found = []
    monkeypatch.setattr(scope_search, "cores", lambda: 3)
    monkeypatch.setattr(scope_search, "mapped", counted)
    monkeypatch.setattr(scope_search, "LARGE", len(texts))
    for each, worth in ((alone, scope_search.WORTH_PROCESSES), (together, 1)):
        monkeypatch.setattr(scope_search, "WORTH_PROCESSES", worth)
        record(each, topics, 1)
        found.append(night(each, 2).found)
    assert asked == [(2, 1), (2, 3)]
    assert found[0].frame.equals(found[1].frame)
    assert found[0].counts == found[1].counts
    assert found[0].counts["merge_band"] > 0
