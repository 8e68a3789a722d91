"""The bundled sample matches `memstate demo` and its page of the docs."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from memstate_core.demo import QUESTIONS, SAMPLES, SCOPE, sample_paths
from memstate_core.model.observation import Observation
from memstate_core.model.parts import EdgeTo, FieldValue

BROKEN_JSON, WRONG_VALUE, FAR_FUTURE = 5, 7, 11
"""The bad rows of late.jsonl, as line numbers."""
LATE, REPEATED = 7, 3
DUPLICATES = {("tomás reis", "person"), ("kestrel mini 2", "device"), ("fernwick nursery", "supplier")}
NAMESAKES = ("jonas falk", "person")
FIRST_DAY, LAST_DAY = date(2026, 3, 1), date(2026, 4, 5)
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "date": (str,),
    "datetime": (str,),
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "list": (list,),
    "json": (dict, list),
}


def lines(name: str) -> list[str]:
    paths = dict(zip(SAMPLES, sample_paths(), strict=True))
    return paths[name].read_text(encoding="utf-8").splitlines()


def decoded(name: str) -> list[Observation]:
    return [msgspec.json.decode(line, type=Observation) for line in lines(name)]


def moment(observation: Observation) -> datetime:
    assert observation.observed_at is not None
    return datetime.fromisoformat(observation.observed_at)


def identity(observation: Observation) -> tuple[str, str]:
    """The topic of an observation: a title resolves to the keyed topic that has it."""
    if observation.topic_id or observation.topic_key:
        return "given", observation.topic_id or observation.topic_key or ""
    if observation.placement == "new_topic":
        return "own", observation.observation_id or ""
    return "title", normalised(observation.title)


def normalised(text: str | None) -> str:
    return " ".join((text or "").lower().split())


def current(observations: list[Observation]) -> dict[str, Any]:
    """Field values after these observations, by name."""
    return {field.name: field.value for observation in observations for field in observation.fields}


CHATS = decoded("chats.jsonl")
OBSERVED = decoded("observations.jsonl")
FIELDS: list[FieldValue] = [field for observation in OBSERVED for field in observation.fields]
EDGES: list[EdgeTo] = [edge for observation in OBSERVED for edge in observation.edges]


def test_the_samples_lie_beside_the_module() -> None:
    assert [path.name for path in sample_paths()] == list(SAMPLES)
    assert all(path.is_file() for path in sample_paths())


def test_ids_are_unique_and_everything_is_of_one_scope() -> None:
    both = [*CHATS, *OBSERVED]
    assert len({observation.observation_id for observation in both}) == len(both)
    assert {f"{o.scope.type}:{o.scope.id}" for o in both if o.scope} == {SCOPE}
    assert all(o.scope for o in both)


def test_everything_was_observed_in_these_five_weeks() -> None:
    moments = [moment(observation) for observation in [*CHATS, *OBSERVED]]
    assert all(each.tzinfo == UTC and FIRST_DAY <= each.date() <= LAST_DAY for each in moments)


def test_ten_sessions_hold_the_turns() -> None:
    sessions = Counter(turn.session_id for turn in CHATS)
    assert len(sessions) == 10
    assert 110 <= len(CHATS) <= 140
    assert min(sessions.values()) >= 12


def test_turns_count_up_and_time_goes_on() -> None:
    for before, after in pairwise(CHATS):
        assert moment(before) < moment(after)
        same_session = before.session_id == after.session_id
        assert after.turn == ((before.turn or 0) + 1 if same_session else 1)


def test_turns_are_by_ines_or_the_assistant() -> None:
    speakers = {"user_message": "Ines", "assistant_message": "assistant"}
    for turn in CHATS:
        assert turn.actor == speakers[turn.kind or ""]
        assert turn.observation_id == f"{turn.session_id}#{turn.turn}"
        assert turn.text
        assert turn.title is turn.topic_key is turn.topic_id is None


def test_every_value_fits_its_type_and_every_type_is_used() -> None:
    for field in FIELDS:
        assert type(field.value) in PYTHON_TYPES[field.field_type or ""], field
    assert {field.field_type for field in FIELDS} == set(PYTHON_TYPES)


def test_every_edge_and_reference_leads_to_a_topic_of_the_sample() -> None:
    keys = {observation.topic_key for observation in OBSERVED}
    ids = {observation.topic_id for observation in OBSERVED}
    assert all(edge.to_topic_key in keys if edge.to_topic_key else edge.to_topic_id in ids for edge in EDGES)
    assert {"part_of", "has_detail", "mentions", "collaborates_with"} <= {edge.kind for edge in EDGES}
    references = [field.ref_topic_id for field in FIELDS if isinstance(field.ref_topic_id, str)]
    assert set(references) == {"person-marta"}


def test_one_reference_is_cleared_by_null() -> None:
    history = [
        f.ref_topic_id for o in OBSERVED if o.topic_key == "old-ferry-yard" for f in o.fields if f.name == "site_keys"
    ]
    assert history == ["person-marta", None]


def test_a_fact_changes_twice_and_says_why() -> None:
    budgets = [f for o in OBSERVED if o.topic_key == "old-ferry-yard" for f in o.fields if f.name == "budget_eur"]
    assert [field.value for field in budgets] == [182_000, 182_000, 168_500, 176_000]
    assert [bool(field.why_changed) for field in budgets] == [False, False, True, True]


def test_three_topics_were_written_twice() -> None:
    copies = {(normalised(o.title), o.topic_kind): o for o in OBSERVED if o.placement == "new_topic"}
    assert set(copies) == DUPLICATES | {NAMESAKES}
    for title in DUPLICATES:
        shared, disagreeing = compare(copies[title])
        assert shared
        assert not disagreeing


def test_namesakes_agree_in_one_field_and_disagree_in_another() -> None:
    other = next(o for o in OBSERVED if o.placement == "new_topic" and normalised(o.title) == NAMESAKES[0])
    assert compare(other) == ({"town"}, {"employer"})


def compare(copy: Observation) -> tuple[set[str], set[str]]:
    """Names of the fields in which a second writing and its keyed topic agree and disagree."""
    title = normalised(copy.title)
    (key,) = {o.topic_key for o in OBSERVED if normalised(o.title) == title and o.topic_key}
    keyed, own = current([o for o in OBSERVED if o.topic_key == key]), current([copy])
    shared = keyed.keys() & own.keys()
    agreeing = {name for name in shared if keyed[name] == own[name]}
    return agreeing, shared - agreeing


def test_no_other_topics_share_title_and_kind() -> None:
    topics = {
        (identity(o), normalised(o.title), o.topic_kind) for o in OBSERVED if o.title and identity(o)[0] != "title"
    }
    twice = {(title, kind) for (title, kind), n in Counter(topic[1:] for topic in topics).items() if n > 1}
    assert twice == DUPLICATES | {NAMESAKES}


def test_late_rows_repeat_break_or_look_back() -> None:
    late = lines("late.jsonl")
    known = {*lines("chats.jsonl"), *lines("observations.jsonl")}
    bad = {BROKEN_JSON, WRONG_VALUE, FAR_FUTURE}
    rest = [line for number, line in enumerate(late, start=1) if number not in bad and line not in known]
    assert sum(line in known for line in late) == REPEATED
    assert len(rest) == LATE
    assert len(late) == LATE + REPEATED + len(bad)
    assert all(msgspec.json.decode(line, type=Observation).title for line in rest)


def test_late_rows_are_older_than_what_was_known() -> None:
    known = set(lines("observations.jsonl"))
    first = min(moment(observation) for observation in OBSERVED)
    for number, line in enumerate(lines("late.jsonl"), start=1):
        if number not in (BROKEN_JSON, FAR_FUTURE) and line not in known:
            assert datetime.fromisoformat(json.loads(line)["observed_at"]) < first


def test_three_late_rows_are_bad_each_in_its_own_way() -> None:
    late = lines("late.jsonl")
    with pytest.raises(json.JSONDecodeError):
        json.loads(late[BROKEN_JSON - 1])
    (field,) = json.loads(late[WRONG_VALUE - 1])["fields"]
    assert field["field_type"] == "int"
    assert isinstance(field["value"], str)
    assert json.loads(late[FAR_FUTURE - 1])["observed_at"].startswith("2126-")


def test_ids_of_the_late_rows_are_new() -> None:
    taken = {observation.observation_id for observation in [*CHATS, *OBSERVED]}
    known = set(lines("observations.jsonl"))
    late = [json.loads(line) for line in lines("late.jsonl") if line not in known and line.endswith("}")]
    ids = [row["observation_id"] for row in late]
    assert len(set(ids)) == len(ids)
    assert not taken & set(ids)


def test_the_sample_answers_both_questions() -> None:
    assert len(QUESTIONS) == 2
    said = {turn.observation_id: turn.text or "" for turn in CHATS}
    assert "176,000" in said["chat/2026-03-27#3"]
    assert "Serviceberry won with 15 votes" in said["chat/2026-03-20#1"]
    assert "a tree you can eat from" in said["chat/2026-03-20#3"]
