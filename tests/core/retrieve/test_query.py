"""What a question gets from a snapshot, and what it never gets."""

from __future__ import annotations

import json

import polars as pl
import pytest

from memstate_core.model.errors import TopicNotFound
from memstate_core.retrieve.query import NEIGHBORS, Question, answer
from tests.core.retrieve.asking import WORDS_ONLY, ask, ids, said
from tests.core.retrieve.conftest import START, Store, day

pytestmark = pytest.mark.slow


def test_the_answer_has_the_shape_of_the_contract(store, opened):
    store.topic("acme", title="Acme renewal", summary="Renewal of the contract", topic_kind="deal", salience=2.5)
    store.field("acme", "owner", (9, "Aya"), (1, "Priya"), ref_topic_id="aya", field_type="string")
    store.says("acme", "Aya takes over the Acme renewal.", on=9, actor="Priya", session_id="s1")
    found = ask(opened(store), "Who owns the Acme renewal?", store)
    [candidate], [evidence] = found.pop("candidates"), found.pop("evidence")
    similarity, score = candidate.pop("similarity"), evidence.pop("score")
    assert 0.3 < similarity <= 1
    assert score > 0
    assert found == {
        "query": "Who owns the Acme renewal?",
        "summary_text": "Acme renewal (deal): owner: Aya",
        "snapshot": "s0/3",
    }
    assert candidate == {
        "topic_id": "acme", "title": "Acme renewal", "summary": "Renewal of the contract", "topic_kind": "deal",
        "scope": "user:a", "state": "active", "salience": 2.5, "failed_salience": 0.0, "neighbors": [], "warnings": [],
        "fields": [{
            "name": "owner", "field_type": "string", "ref_topic_id": "aya", "history": [], "conflict": [],
            "current": {
                "id": "acme/field/owner/0", "value": "Aya", "valid_from": "2026-01-10T00:00:00Z",
                "recorded_at": "2026-01-11T00:00:00Z", "provenance": "api", "why_changed": None,
                "impact_expected": None, "confidence": None, "evidence_ids": ["e-acme-owner-0"],
            },
        }],
    }  # fmt: skip
    assert evidence == {
        "observation_id": "o0000", "text": "Aya takes over the Acme renewal.", "observed_at": "2026-01-10T00:00:00Z",
        "topic_id": "acme", "actor": "Priya", "session_id": "s1", "kind": "user_message",
    }  # fmt: skip
    json.dumps([found, candidate, evidence])


def test_a_default_query_returns_only_the_newest_revision(store, opened):
    store.topic("acme")
    store.field("acme", "owner", (9, "Aya"), (5, ["Priya", 1]), (1, None))
    readers = opened(store)
    [field] = ask(readers, "acme", store)["candidates"][0]["fields"]
    assert (field["current"]["value"], field["history"]) == ("Aya", [])
    [field] = ask(readers, "acme", store, history=True)["candidates"][0]["fields"]
    assert [revision["value"] for revision in field["history"]] == [["Priya", 1], None]


def test_fields_come_by_name(store, opened):
    store.topic("acme")
    for number, name in enumerate(("zip", "owner", "age")):
        store.field("acme", name, (number, name), id=f"f{number}")
    [candidate] = ask(opened(store), "acme", store)["candidates"]
    assert [field["name"] for field in candidate["fields"]] == ["age", "owner", "zip"]


def test_archived_and_merged_topics_and_their_evidence_stay_out(store, opened):
    store.topic("live", title="Garden plans")
    store.topic("gone", title="Garden plans of old", state="archived")
    store.topic("tomb", title="Garden plans", state="merged", merged_into="live")
    kept = store.says("live", "The garden needs roses")
    store.says("gone", "The garden plans of old: roses and tulips")
    found = ask(opened(store), "garden plans of old", store)
    assert (ids(found), said(found)) == (["live"], [kept])


def test_as_of_shows_topics_fields_and_evidence_of_then(store, opened):
    store.topic("acme", title="Acme Ltd")
    store.field("acme", "owner", (9, "Aya"), (5, "Priya"), (1, "Omar"))
    store.field("acme", "price", (8, 3))
    store.field("acme", "title", (7, "Acme Ltd"), (0, "Acme start-up"), part="topic")
    store.topic("gone", title="Acme office", state="archived", created_at=day(2))
    store.topic("new", title="Acme shop", created_at=day(8))
    early, _ = store.says("acme", "Acme hired Priya", on=5), store.says("acme", "Acme hired Aya", on=9)
    moved = store.says("gone", "The Acme office moved", on=3)
    readers = opened(store)
    found = ask(readers, "acme", store, as_of=day(6))
    assert set(ids(found)) == {"acme", "gone"}
    assert set(said(found)) == {early, moved}
    [acme] = [candidate for candidate in found["candidates"] if candidate["topic_id"] == "acme"]
    [field] = acme["fields"]
    assert (field["name"], field["current"]["value"], field["history"]) == ("owner", "Priya", [])
    assert acme["title"] == "Acme start-up"
    then = ask(readers, "acme", store, as_of=day(6), history=True, topic_ids=("acme",))["candidates"][0]
    assert [revision["value"] for revision in then["fields"][0]["history"]] == ["Omar"]
    assert ask(readers, "acme", store, as_of=day(-1))["candidates"] == []


def test_scopes_are_never_mixed_unless_named(store, opened):
    store.topic("mine", title="Holiday in Rome")
    store.topic("theirs", "user:b", title="Holiday in Rome, too")
    store.says("mine", "Rome in spring")
    store.says("theirs", "Rome in spring", scope="user:b")
    store.edge("mine", "theirs")
    readers = opened(store)
    found = ask(readers, "Rome", store)
    assert (ids(found), said(found), found["candidates"][0]["neighbors"]) == (["mine"], ["o0000"], [])
    assert set(ids(ask(readers, "Rome", store, scopes=("user:a", "user:b")))) == {"mine", "theirs"}
    assert set(ids(ask(readers, "Rome", store, scopes=None))) == {"mine", "theirs"}
    nothing = ask(readers, "Rome", store, scopes=("user:c",))
    assert (nothing["candidates"], nothing["evidence"], nothing["summary_text"]) == ([], [], "No topic is known here.")


def test_what_other_scopes_hold_does_not_change_a_score(store, opened):
    store.topic("mine", title="Holiday in Rome")
    store.talk("mine", "s", ("Ann", "Rome in spring?"), ("Bob", "Yes, in April."))
    alone = ask(opened(store), "Rome in spring", store, explain=True)
    store.topic("theirs", "user:b", title="Rome Rome")
    store.talk("theirs", "s", ("Ann", "Rome in spring!"), ("Bob", "Spring in Rome!"), scope="user:b")
    assert ask(opened(store), "Rome in spring", store, explain=True) == alone


def test_shards_answer_together(store, opened):
    other = Store()
    store.topic("a1", title="Rome trip")
    other.topic("b1", "user:b", title="Rome trip in spring")
    other.field("b1", "month", (1, "April"))
    other.says("b1", "Rome trip", scope="user:b")
    readers = opened(store, other)
    found = ask(readers, "Rome trip in spring", store, scopes=("user:a", "user:b"))
    assert ids(found) == ["b1", "a1"]
    assert found["candidates"][0]["fields"][0]["current"]["value"] == "April"
    assert found["snapshot"] == "s0/3,s1/3"
    assert ids(ask(readers, "Rome trip", store, scopes=("user:b",))) == ["b1"]


def test_edges_boost_a_neighbour_and_are_listed(store, opened):
    store.topic("acme", title="Acme renewal contract", salience=1.0)
    store.topic("quiet", title="Zeppelin", salience=3.0)
    store.topic("other", title="Zebra", salience=2.0)
    store.topic("old", title="Past", state="archived")
    store.edge("acme", "quiet", "has_detail")
    store.edge("other", "acme", "part_of", valid_until=day(1))
    store.edge("acme", "old")
    readers = opened(store)
    found = ask(readers, "Acme renewal contract", store, explain=True)
    assert ids(found)[:2] == ["acme", "quiet"]
    assert found["candidates"][0]["neighbors"] == [
        {"topic_id": "quiet", "title": "Zeppelin", "kind": "has_detail", "direction": "out"}
    ]
    assert found["candidates"][1]["neighbors"][0]["direction"] == "in"
    assert found["candidates"][1]["explain"]["parts"]["structure"] > 0
    flat = ask(readers, "Acme renewal contract", store, explain=True, stages=frozenset({"semantic"}))
    assert {c["explain"]["parts"]["structure"] for c in flat["candidates"]} == {0}


def test_a_boosted_topic_has_its_own_edges(store, opened):
    store.topic("acme", title="Acme renewal contract")
    store.topic("far", title="Far")
    store.topic("near", title="Near")
    store.edge("acme", "near", "part_of")
    store.edge("near", "far", "part_of")
    found = ask(opened(store), "Acme renewal contract", store, top_k=2)
    assert ids(found) == ["acme", "near"]
    assert [n["topic_id"] for n in found["candidates"][1]["neighbors"]] == ["acme", "far"]


def test_neighbours_are_capped_most_salient_first(store, opened):
    store.topic("hub", title="Hub")
    for n in range(NEIGHBORS + 4):
        store.topic(f"n{n:02d}", title=f"Leaf {n}", salience=float(n))
        store.edge("hub", f"n{n:02d}")
    found = ask(opened(store), "hub", store, top_k=1)
    titles = [neighbor["title"] for neighbor in found["candidates"][0]["neighbors"]]
    assert titles == [f"Leaf {n}" for n in range(NEIGHBORS + 3, 3, -1)]


def test_warnings_name_dangling_references_and_stale_topics(store, opened):
    store.topic("acme")
    store.field("acme", "owner", (1, "Aya"), ref_topic_id="lost", ref_state="dangling")
    store.reviews.append(
        {
            "id": "r1",
            "topic_id": "acme",
            "cause_topic_id": "base",
            "hops": 1,
            "reason": "base changed",
            "queued_at": START,
        }
    )
    [candidate] = ask(opened(store), "acme", store)["candidates"]
    assert candidate["warnings"] == [
        {"kind": "dangling_reference", "message": "field owner refers to topic lost, which does not exist",
         "field": "owner", "related_topic_id": "lost"},
        {"kind": "stale", "message": "base changed", "field": None, "related_topic_id": "base"},
    ]  # fmt: skip


def test_topic_ids_and_field_names_narrow_the_answer(store, opened):
    for name in ("one", "two", "three"):
        store.topic(name, title=f"Plan {name}")
        store.field(name, "owner", (1, "Aya"))
        store.field(name, "price", (1, 3))
        store.says(name, f"The plan {name}")
    store.topic("tomb", state="merged", merged_into="two")
    store.aliases.append({"alias": "plan-two", "scope": "user:a", "topic_id": "two"})
    readers = opened(store)
    found = ask(readers, "plan one", store, topic_ids=("tomb", "three"), field_names=("price",))
    assert (set(ids(found)), set(said(found))) == ({"two", "three"}, {"o0001", "o0002"})
    assert [[field["name"] for field in c["fields"]] for c in found["candidates"]] == [["price"], ["price"]]
    assert ids(ask(readers, "plan one", store, topic_ids=("plan-two",))) == ["two"]
    with pytest.raises(TopicNotFound, match="nobody"):
        ask(readers, "plan", store, topic_ids=("nobody",))


def test_terms_alone_need_no_model(store, opened):
    store.topic("acme", title="Acme renewal")
    store.says("acme", "The Acme renewal is signed")
    readers = opened(store)
    store.encoder.asked.clear()
    found = ask(readers, "Acme renewal", store, stages=WORDS_ONLY, explain=True)
    assert store.encoder.asked == []
    assert found["candidates"][0]["similarity"] is None
    parts = set(found["evidence"][0]["explain"]["parts"])
    assert parts == {"turn_words", "window_words", "length", "asks", "speaker", "session", "topic"}


def test_explained_parts_add_up_to_the_score(store, opened):
    store.topic("acme", title="Acme renewal", created_at=START)
    store.talk("acme", "s", ("Ann", "The Acme renewal, signed?"), ("Bob", "Yes."), ("Ann", "Good."), on=70)
    found = ask(opened(store), "Did Ann sign in March 2026?", store, explain=True)
    for entry in (*found["evidence"], *found["candidates"]):
        assert sum(entry["explain"]["parts"].values()) == pytest.approx(entry["explain"]["score"], abs=1e-4)
    assert set(found["evidence"][0]["explain"]["parts"]) == {
        "turn_words", "window_words", "turn_vector", "window_vector", "length", "asks", "speaker", "date",
        "session", "topic", "newer",
    }  # fmt: skip


def test_the_cache_spares_the_model(store, opened, tmp_path):
    store.topic("acme")
    readers = opened(store)
    store.encoder.asked.clear()
    for _ in range(2):
        answer(readers, store.encoder, tmp_path / "cache.sqlite", Question("acme?", ("user:a",)))
    assert store.encoder.asked == ["acme?"]


def test_an_answer_to_a_short_reply_is_found_by_its_window(store, opened):
    store.topic("chat", title="Chat")
    for n in range(30):
        store.talk("chat", f"s{n}", ("Ann", f"Something else number {n}"), ("Bob", "Sure"), on=n)
    turns = store.talk("chat", "pets", ("Ann", "What is the name of your new puppy?"), ("Bob", "Biscuit!"), on=40)
    found = ask(opened(store), "What is the name of Bob's puppy?", store, evidence_k=2)
    assert set(said(found)) == set(turns)


def test_the_speaker_and_the_date_decide_between_equal_turns(store, opened):
    store.topic("chat", title="Chat")
    for n, actor in enumerate(("Ann", "Bob", "Ann", "Bob")):
        store.says("chat", "I went hiking", actor=actor, session_id=f"s{n}", turn=1, on=n * 40)
    readers = opened(store)
    assert set(said(ask(readers, "When did Bob go hiking?", store, evidence_k=2))) == {"o0001", "o0003"}
    assert said(ask(readers, "Who went hiking in March?", store, evidence_k=1)) == ["o0002"]


def test_turns_by_a_named_person_precede_turns_that_address_them(store, opened):
    """A question is compared with turns without the names of their speakers, nicknames included."""
    store.topic("chat", title="Chat")
    for n in range(8):
        store.talk("chat", f"s{n}", ("u17", "Hey Kate, hello Kate!"), ("u18", "Hello"), on=n)
    (answer,) = store.talk("chat", "pets", ("u18", "Rabbits, and sometimes doves"), on=20)
    readers = opened(store)
    store.encoder.asked.clear()
    assert said(ask(readers, "Which doves did Kate have?", store, evidence_k=1)) == [answer]
    assert store.encoder.asked == ["Which doves did Kate have?", "Which doves did have?"]


def test_a_question_for_the_present_is_compared_as_its_person_would_ask_it(store, opened):
    store.topic("chat", title="Chat")
    for at, text in enumerate(("Where is what does?", "Shut the old gate", "I keep doves")):
        store.says("chat", text, actor="Kate", session_id=str(at), turn=1, on=at)
    readers = opened(store)
    store.encoder.asked.clear()
    found = ask(readers, "What doves does Kate keep?", store, explain=True)
    assert store.encoder.asked == ["What doves does Kate keep?", "What doves do I keep?"]
    words = {hit["observation_id"]: hit["explain"]["parts"]["turn_words"] for hit in found["evidence"]}
    assert words["o0000"] == words["o0001"] < words["o0002"]


def test_of_two_turns_with_the_same_words_the_one_that_asks_comes_last(store, opened):
    store.topic("chat", title="Chat")
    asks = store.says("chat", "The boat is sold?", session_id="a", turn=1)
    says = store.says("chat", "The boat is sold.", session_id="b", turn=1)
    assert said(ask(opened(store), "boat sold", store, evidence_k=2)) == [says, asks]


def test_evidence_without_a_vector_is_found_by_its_terms(store, opened):
    store.topic("acme", title="Acme")
    for n in range(20):
        store.says("acme", f"We talked about matter {n}", session_id="s", turn=n)
    asserted = store.says("acme", "Acme renewal: owner: Aya", embed=False)
    assert said(ask(opened(store), "owner of the Acme renewal", store))[0] == asserted


def test_equal_scores_come_in_a_fixed_order(store, opened):
    for name in ("b", "c", "a"):
        store.topic(name, title="Same", scope="user:a")
        store.says(name, "Same words", session_id=None)
    readers = opened(store)
    assert ids(ask(readers, "same", store)) == ["a", "b", "c"]
    assert said(ask(readers, "same", store)) == ["o0000", "o0001", "o0002"]


def test_nothing_asked_and_nothing_known(store, opened):
    readers = opened(store)
    assert ask(readers, "anything", store, scopes=None)["candidates"] == []
    assert pl.read_parquet(readers[0].snapshot.path / "scopes.parquet").height == 0


def test_none_can_be_asked_for(store, opened):
    store.topic("acme")
    store.says("acme", "Acme")
    found = ask(opened(store), "acme", store, top_k=0, evidence_k=0)
    assert (found["candidates"], found["evidence"]) == ([], [])


def test_an_empty_question_still_answers(store, opened):
    store.topic("acme")
    assert ids(ask(opened(store), "", store)) == ["acme"]
