"""The cache of answers: shared by the threads of a run, kept over kills, and of no harm when it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from memstate_core.llm.answer_cache import AnswerCache, Reply, request_key
from memstate_core.llm.schema import PLACEMENTS, TOPICS

MESSAGES = [{"role": "user", "content": "this"}]
REPLY = Reply("text", True, 7)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "answers.sqlite"


@pytest.fixture
def answers(path: Path) -> Iterator[AnswerCache]:
    with closing(AnswerCache(path)) as opened:
        yield opened


def test_an_answer_is_found_again(path: Path, answers: AnswerCache) -> None:
    assert answers.get("key") is None
    answers.put("key", REPLY)
    with closing(AnswerCache(path)) as reopened:
        assert reopened.get("key") == REPLY


def test_the_key_depends_on_everything_that_shapes_the_answer() -> None:
    asked = [
        ("m", MESSAGES, TOPICS, (0.0, 100)),
        ("n", MESSAGES, TOPICS, (0.0, 100)),
        ("m", [*MESSAGES, *MESSAGES], TOPICS, (0.0, 100)),
        ("m", [{"role": "system", "content": "this"}], TOPICS, (0.0, 100)),
        ("m", MESSAGES, PLACEMENTS, (0.0, 100)),
        ("m", MESSAGES, TOPICS, (0.5, 100)),
        ("m", MESSAGES, TOPICS, (0.0, 101)),
    ]
    keys = [request_key(*request) for request in asked]
    assert len(set(keys)) == len(asked)
    assert keys == [request_key(*request) for request in asked]


def test_threads_of_a_run_share_a_new_cache(answers: AnswerCache) -> None:
    def ask(number: int) -> bool:
        answers.put(str(number), Reply(str(number), False, number))
        return answers.get(str(number)) == Reply(str(number), False, number)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(64)))


def test_a_new_cache_waits_for_another_process_that_is_writing(path: Path, answers: AnswerCache) -> None:
    path.parent.mkdir()
    with (
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE another(key TEXT)")
        put = pool.submit(answers.put, "key", REPLY)
        with pytest.raises(TimeoutError):
            put.result(timeout=0.3)
        other.execute("COMMIT")
        put.result()
    assert answers.get("key") == REPLY


def test_an_entry_that_cannot_be_decoded_counts_as_absent(path: Path, answers: AnswerCache) -> None:
    answers.put("key", REPLY)
    for damaged in (b'{"text": 1}', b"{", None, 5):
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE answers SET reply = ?", (damaged,))
        assert answers.get("key") is None
    answers.put("key", REPLY)
    assert answers.get("key") == REPLY


def test_an_entry_with_changed_bytes_counts_as_absent(path: Path, answers: AnswerCache) -> None:
    """A changed answer would name topics that the model did not."""
    for old, new in ((b'"text":"text"', b'"text":"taxt"'), (b":7,", b":8,"), (b"true", b"false")):
        answers.put("key", REPLY)
        with closing(sqlite3.connect(path)) as database, database:
            ((reply,),) = database.execute("SELECT reply FROM answers").fetchall()
            database.execute("UPDATE answers SET reply = ?", (reply.replace(old, new),))
        assert old in reply
        assert answers.get("key") is None
    answers.put("key", REPLY)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE answers SET key = 'other'")
    assert answers.get("other") is None


def test_an_entry_of_the_first_version_is_read(path: Path, answers: AnswerCache) -> None:
    answers.put("key", REPLY)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE answers SET reply = ?", (b'{"text":"text","truncated":true,"tokens":7}',))
    assert answers.get("key") == REPLY


def test_garbage_in_place_of_the_cache_is_set_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"garbage" * 1000)
    with closing(AnswerCache(path)) as answers:
        assert answers.get("key") is None
        answers.put("key", REPLY)
        assert answers.get("key") == REPLY
    assert path.with_name("answers.sqlite.damaged").exists()
