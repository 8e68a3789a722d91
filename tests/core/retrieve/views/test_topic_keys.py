"""The topic that an id or a `topic_key` names."""

from __future__ import annotations

import polars as pl
import pytest

from memstate_core.model.errors import TopicAmbiguous, TopicNotFound
from memstate_core.model.ids import key_id
from memstate_core.retrieve.views.topic_keys import topic_id_of
from tests.core.retrieve.conftest import Store


def named(scope: str, key: str) -> str:
    return str(pl.select(key_id(pl.lit(scope), pl.lit(key))).item())


@pytest.fixture
def readers(store, opened):
    store.topic(named("user:a", "uniq"), title="Acme Ltd")
    store.topic(named("user:a", "shared"), title="Boat")
    store.topic(named("user:b", "shared"), title="Lake boat", scope="user:b")
    store.topic(named("user:a", "left"), title="Left", state="merged", merged_into=named("user:a", "uniq"))
    store.topic("other", title="Other")
    store.aliases.append({"alias": named("user:a", "alias"), "scope": "user:a", "topic_id": "other"})
    return opened(Store(), store)


@pytest.mark.parametrize("key", ["uniq", "left"])
def test_a_key_names_the_topic_that_it_leads_to(readers, key):
    assert topic_id_of(readers, key) == named("user:a", "uniq")


def test_an_id_and_an_alias_stay_as_they_are(readers):
    assert topic_id_of(readers, "other") == "other"
    assert topic_id_of(readers, named("user:a", "left")) == named("user:a", "left")
    assert topic_id_of(readers, "alias") == "other"


def test_a_key_of_several_scopes_is_ambiguous_unless_one_is_visible(readers):
    with pytest.raises(TopicAmbiguous) as caught:
        topic_id_of(readers, "shared")
    listed = [f"{named(scope, 'shared')} in scope {scope}" for scope in ("user:a", "user:b")]
    assert ", ".join(listed) in caught.value.message
    assert topic_id_of(readers, "shared", ["user:b"]) == named("user:b", "shared")


def test_an_unknown_name_is_not_found(readers):
    with pytest.raises(TopicNotFound, match="'nothing'"):
        topic_id_of(readers, "nothing")
    with pytest.raises(TopicNotFound):
        topic_id_of(readers, "shared", ["user:c"])
