"""Response schemas are derived from the answer types: what the server promises, what the client tolerates."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from memstate_core.model import answers
from memstate_core.model.answers import Answer
from memstate_core.model.answers.base import NullIfOlder, Sometimes
from memstate_core.serve.response_models import response_model


class Older(Answer, frozen=True):
    """One key of each declaration that `memstate_core.model.answers.base` lists."""

    needed: int
    later: list[str] = msgspec.field(default_factory=list)
    never_null: NullIfOlder[str] = None
    at_times: Sometimes[int] = None
    from_: str | None = msgspec.field(default=None, name="from")


WHOLE: dict[str, Any] = {"needed": 1, "later": [], "never_null": "x", "from": None}
KINDS = [
    kind for _, kind in inspect.getmembers(answers, inspect.isclass) if issubclass(kind, Answer) and kind is not Answer
]


def test_the_server_sends_every_key_that_is_not_marked_as_sent_at_times() -> None:
    model = response_model(Older)
    assert model.model_json_schema()["required"] == ["needed", "later", "never_null", "from"]
    model.model_validate(WHOLE)
    for key in WHOLE:
        with pytest.raises(ValidationError, match="Field required"):
            model.model_validate({name: value for name, value in WHOLE.items() if name != key})


@pytest.mark.parametrize("wrong", [{"mood": "good"}, {"never_null": None}, {"at_times": "soon"}, {"needed": None}])
def test_the_server_sends_nothing_else(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        response_model(Older).model_validate(WHOLE | wrong)


def test_the_client_reads_older_and_newer_servers() -> None:
    assert msgspec.convert({"needed": 1, "mood": "good"}, Older) == Older(needed=1)
    with pytest.raises(msgspec.ValidationError, match="missing required field `needed`"):
        msgspec.convert({}, Older)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_the_client_requires_no_key_that_the_server_may_omit(kind: type[Answer]) -> None:
    schema = response_model(kind).model_json_schema()
    assert (schema["title"], schema["description"]) == (kind.__name__, inspect.getdoc(kind))
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    assert fields.keys() == schema["properties"].keys()
    assert {key for key, field in fields.items() if field.required} <= set(schema["required"])
    assert schema["additionalProperties"] is True


def test_clients_decode_answers_of_the_first_version() -> None:
    """The keys that servers of version 0.1.0 send are all that a client may ever require."""
    required = {
        kind.__name__: sorted(field.encode_name for field in msgspec.structs.fields(kind) if field.required)
        for kind in (answers.QueryAnswer, answers.Candidate, answers.IngestAnswer, answers.Readiness)
    }
    assert required == {
        "QueryAnswer": ["candidates", "evidence", "query", "snapshot", "summary_text"],
        "Candidate": [
            "failed_salience", "salience", "scope", "similarity", "summary", "title", "topic_id", "topic_kind",
        ],
        "IngestAnswer": ["accepted", "file", "observation_ids", "topic_ids"],
        "Readiness": ["status"],
    }  # fmt: skip
