"""Recorded questions: by consent and in the sample alone, kept for their days, asked of each scope in turn."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstate_core.policy.sections.recall import RecallSettings
from memstate_core.retrieve.evaluation import recorded_questions as module
from memstate_core.retrieve.evaluation.recall import read_questions
from memstate_core.retrieve.evaluation.recorded_questions import QuestionRecorder, expire_questions, recorded_questions
from memstate_core.retrieve.query import Question

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
FOUND = {
    "candidates": [{"topic_id": f"t{n}"} for n in range(8)],
    "evidence": [{"observation_id": f"o{n}"} for n in range(10)],
}
ALL = RecallSettings(record=True, sample=1.0)


def record(folder: Path, settings: RecallSettings, *texts: str, at: datetime = NOW, scope: str | None = None) -> int:
    recorder = QuestionRecorder(folder, settings)
    scopes = (scope,) if scope else None
    return sum(recorder.record(Question(text, scopes), FOUND, at) for text in texts)


def test_a_question_is_kept_with_the_best_of_its_answer_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "recall"
    assert record(folder, ALL, "Where is Élan's boat?\u2028", scope="user:a") == 1
    (file,) = folder.iterdir()
    (asked,) = recorded_questions(folder, ALL, NOW)
    assert asked == read_questions(file)[0]
    assert (asked.text, asked.scopes, asked.place) == (
        "Where is Élan's boat?\u2028",
        ("user:a",),
        f"{file.name} line 1",
    )
    assert (asked.topics, asked.observations) == ({"t0", "t1", "t2"}, {"o0", "o1", "o2", "o3", "o4"})
    assert asked.asked_at == NOW
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "asked",
    [
        Question("Which boat?", as_of=NOW),
        Question("Which boat?", topic_ids=("t1",)),
        Question("Which boat?", field_names=("colour",)),
        Question("Which boat?", stages=frozenset({"temporal"})),
        Question("  "),
    ],
)
def test_questions_about_the_past_or_a_part_are_not_recorded(asked: Question, tmp_path: Path) -> None:
    assert not QuestionRecorder(tmp_path / "recall", ALL).record(asked, FOUND, NOW)
    assert not (tmp_path / "recall").exists()


def test_nothing_is_recorded_without_consent_or_without_an_answer(tmp_path: Path) -> None:
    assert record(tmp_path / "recall", RecallSettings(sample=1.0), "Which boat?") == 0
    nothing: dict[str, Any] = {"candidates": [], "evidence": []}
    assert not QuestionRecorder(tmp_path / "recall", ALL).record(Question("Which boat?"), nothing, NOW)
    assert not (tmp_path / "recall").exists()


def test_consent_is_by_scope(tmp_path: Path) -> None:
    settings = RecallSettings(record=True, sample=1.0, record_scopes=("user:a", "user:b"))
    recorder = QuestionRecorder(tmp_path, settings)
    both, beyond = Question("q", ("user:a", "user:b")), Question("q", ("user:a", "user:c"))
    assert recorder.consents(both)
    assert not recorder.consents(beyond)
    assert not recorder.consents(Question("q"))  # every scope


def test_the_sample_is_a_share_of_the_texts_and_always_the_same(tmp_path: Path) -> None:
    recorder = QuestionRecorder(tmp_path, RecallSettings(record=True, sample=0.25))
    drawn = [recorder.consents(Question(f"question {n}")) for n in range(4000)]
    assert 900 < sum(drawn) < 1100
    assert drawn == [recorder.consents(Question(f"question {n}")) for n in range(4000)]


def test_old_days_are_neither_asked_nor_kept(tmp_path: Path) -> None:
    settings = RecallSettings(record=True, sample=1.0, keep_days=3)
    for age in (5, 4, 3, 0):
        record(tmp_path, settings, f"asked {age} days ago", at=NOW - timedelta(days=age))
    assert [each.text for each in recorded_questions(tmp_path, settings, NOW)] == [
        "asked 0 days ago",
        "asked 3 days ago",
    ]
    expire_questions(tmp_path, settings, NOW)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["2026-05-17", "2026-05-20"]


def test_each_scope_has_its_turn_and_each_question_is_asked_once(tmp_path: Path) -> None:
    record(tmp_path, ALL, *(f"many {n % 50}" for n in range(100)), scope="user:busy")
    record(tmp_path, ALL, "one", scope="user:calm")
    limited = ALL.model_copy(update={"max_questions": 3})
    asked = [(each.scopes, each.text) for each in recorded_questions(tmp_path, limited, NOW)]
    assert asked == [(("user:busy",), "many 49"), (("user:calm",), "one"), (("user:busy",), "many 48")]
    assert len(recorded_questions(tmp_path, ALL, NOW)) == 51


def test_lines_that_are_no_questions_are_skipped(tmp_path: Path) -> None:
    record(tmp_path, ALL, "first")
    (file,) = tmp_path.iterdir()
    with file.open("ab") as lines:
        lines.write(
            b'{"q": "cut by a power\n\xff\xfe\n[1]\n{"q": "x", "topics": ["t"], "at": "9999-12-31T23:00:00-09:00"}\n'
        )
    record(tmp_path, ALL, "second")
    assert [each.text for each in recorded_questions(tmp_path, ALL, NOW)] == ["second", "first"]


def test_a_day_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    assert 0 < record(tmp_path, ALL, *(f"question {n}" for n in range(100))) < 10
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size <= 1000
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_a_disk_that_refuses_fails_no_question(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "recall").write_text("a file in the place of the folder")
    assert record(tmp_path / "recall", ALL, "first", "second") == 0
    assert [each.message.split(":")[0] for each in caplog.records] == ["questions cannot be recorded"]
