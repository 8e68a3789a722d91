"""Turns become segments with topics: nothing is lost or invented, for any text."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.embed.encoder import DIMENSION
from memstate_core.placement.segment_vectors import PlacedSegments, SegmentVectors, placed_segments, with_turn_centroids
from memstate_core.placement.turns import place_turns, placements
from memstate_core.placement.vectors import Embeddings
from memstate_core.policy.policy import Policy
from memstate_core.policy.settings import Settings
from tests.core.placement.talk import BEGAN, bag_of_words, sessions, talk, turn

SETTINGS = Settings()
NOBODY = Embeddings(
    pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.String), np.zeros((0, DIMENSION), dtype=np.float32)
)
NO_TITLES = pl.DataFrame(schema={"id": pl.String, "title": pl.String})
NONE_TAKEN = pl.DataFrame(schema={"scope": pl.String, "title": pl.String})
NOTHING = PlacedSegments(SegmentVectors.empty(), NOBODY)

SUBJECTS = {
    "pottery": "clay kiln glaze bowl wheel studio teacher firing oven ceramic",
    "canoe": "canoe paddle river rapids lake tent portage shore vest drysuit",
    "tax": "invoice receipt deduction accountant form deadline refund auditor ledger payroll",
    "bread": "sourdough starter flour crust rye loaf levain dough salt yeast",
    "bees": "hive queen swarm honey frame smoker pollen drone comb brood",
    "chess": "opening rook bishop endgame gambit castling pawn clock tournament elo",
}


def session(subject: str, seed: int) -> list[str]:
    """Six turns about a subject, each of some of its words."""
    words = SUBJECTS[subject].split()
    chance = np.random.default_rng(seed)
    return [" ".join(chance.choice(words, 5, replace=False)) + f" {subject}" for _ in range(6)]


def placed(turns: pl.DataFrame) -> pl.DataFrame:
    return place_turns(turns, NOBODY, NO_TITLES, NONE_TAKEN, NOTHING, bag_of_words, SETTINGS)


def test_a_later_session_continues_the_topic_of_an_earlier_one_with_its_reason() -> None:
    order = [*SUBJECTS, "pottery"]
    rows = placed(sessions(*(session(subject, at) for at, subject in enumerate(order)))).sort("began_at")
    assert rows["topic_id"].n_unique() == len(SUBJECTS)
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    assert last["topic_id"] == first["topic_id"]
    assert (last["title"], last["topic_kind"]) == (None, None)
    assert last["summary"] not in (None, first["summary"])
    assert last["reason"].startswith(f"continues '{first['title']}': cosine 0.")
    assert "probability" in last["reason"]
    assert 0 < last["score"] <= 1
    assert rows["provenance"].unique().to_list() == ["import"]


@pytest.mark.parametrize(
    ("renews", "said"),
    [("nothing", (None, None)), ("summary", (None, str)), ("title_and_summary", (str, str))],
)
def test_policy_says_what_a_continuation_renews(renews: str, said: tuple[type | None, ...]) -> None:
    policy = Policy.model_validate({"continuation_renews": renews})
    order = [*SUBJECTS, "pottery"]
    turns = sessions(*(session(subject, at) for at, subject in enumerate(order)))
    chosen = Settings.model_validate({"policy": policy})
    rows = place_turns(turns, NOBODY, NO_TITLES, NONE_TAKEN, NOTHING, bag_of_words, chosen).sort("began_at")
    last = rows.row(-1, named=True)
    assert tuple(last[name] if last[name] is None else type(last[name]) for name in ("title", "summary")) == said
    made = dict(placements(rows).select("evidence_id", "operation").iter_rows())
    assert {made[each] for each in last["evidence_ids"]} == {"extend_topic"}
    assert set(made.values()) == {"new_topic", "extend_topic"}


def test_greetings_become_no_hub() -> None:
    greetings = ["Hi Ben!", "Hi Aya, how are you?", "Fine, thanks, and you?", "Fine, thanks!"]
    talks = [greetings if at % 2 else session(subject, at) for at, subject in enumerate([*SUBJECTS, *SUBJECTS])]
    rows = placed(sessions(*talks))
    alone = rows.filter(pl.col("evidence_ids").list.len() == len(greetings))
    assert alone.height == 6
    assert alone["topic_id"].n_unique() == 6


def test_a_record_that_asks_for_a_topic_of_its_own_continues_nothing() -> None:
    again = [turn(900 + at, text, session=None, placement="new_topic") for at, text in enumerate(session("pottery", 0))]
    rows = placed(pl.concat([sessions(*(session(s, at) for at, s in enumerate(SUBJECTS))), talk(*again)]))
    assert rows["topic_id"].n_unique() == len(SUBJECTS) + len(again)


def test_segments_of_earlier_nights_are_known_by_their_turns() -> None:
    turns = sessions(*(session(subject, at) for at, subject in enumerate(SUBJECTS)))
    rows = placed(turns)
    past = placed_segments(rows, turns, pl.Series(["user:aya"]), bag_of_words)
    assert sorted(past.topics.ids) == sorted(rows["topic_id"])
    odd = np.tile(bag_of_words(["nothing of the kind"]), (2, 1))
    known = with_turn_centroids(
        Embeddings(pl.Series([rows["topic_id"][0], "x"]), pl.Series(["user:aya"] * 2), odd), past
    )
    assert not np.allclose(known.vectors[0], odd[0])
    assert np.allclose(known.vectors[1], odd[1])
    later = sessions(session("pottery", 99)).with_columns(
        pl.col("observed_at").dt.offset_by("90d"), evidence_id="later" + pl.col("evidence_id")
    )
    titles = rows.filter(pl.col("title").is_not_null()).select("title", id="topic_id")
    found = place_turns(later, past.topics, titles, NONE_TAKEN, past, bag_of_words, SETTINGS)
    assert found["topic_id"].unique().to_list() == [rows.sort("began_at")["topic_id"][0]]


STRANGE = [
    "",
    " ",
    "k",
    "\U0001f600",
    "\U0001f600\U0001f389",
    "\u6211\u4eec\u53bb\u4e86\u9676\u827a\u8bfe",
    "\u062f\u0631\u0633 \u0627\u0644\u0641\u062e\u0627\u0631",
    "word " * 2000,
    "x" * 10_000,
    "```\ncode\n```",
    "https://example.org",
    "!!!",
    "\u200d",
    "a\u0301" * 50,
    "NaN",
    "'",
    "''s",
    "-",
    "\x1f\x1e",
]


@pytest.mark.parametrize("text", STRANGE)
def test_a_session_of_one_strange_turn_is_a_topic(text: str) -> None:
    row = placed(talk(turn(1, text, actor=None))).row(0, named=True)
    assert row["title"]
    assert row["participants"] == []
    assert row["evidence_ids"] == ["e00001"]


def test_turns_that_are_all_the_same_are_no_error() -> None:
    rows = placed(sessions(*[["The heron nests at the pond by the old mill today, said Aya again."] * 6] * 5))
    assert rows.filter(pl.col("title").is_not_null())["title"].null_count() == 0
    assert rows["evidence_ids"].list.len().sum() == 30


turns_of_talk = st.lists(
    st.tuples(
        st.sampled_from(("user:aya", "user:ben")),
        st.sampled_from((None, "a", "b")),
        st.none() | st.sampled_from(("Aya", "Ben", "\u4e2d")),
        st.sampled_from(STRANGE) | st.text(max_size=30) | st.sampled_from([t for s in SUBJECTS for t in session(s, 1)]),
        st.integers(0, 3),
        st.sampled_from((None, "new_topic")),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(turns_of_talk)
def test_every_turn_is_in_one_segment_of_its_scope(
    said: list[tuple[str, str | None, str | None, str, int, str | None]],
) -> None:
    rows = [
        turn(at, text, scope=scope, session=of, actor=actor, placement=own, observed_at=BEGAN + timedelta(days=day))
        for at, (scope, of, actor, text, day, own) in enumerate(said)
    ]
    turns = talk(*rows)
    found = placed(turns)
    spread = placements(found)
    assert sorted(spread["evidence_id"]) == sorted(turns["evidence_id"])
    scopes = spread.join(turns.select("evidence_id", _scope="scope"), on="evidence_id")
    assert (scopes["scope"] == scopes["_scope"]).all()
    begun = set(found.filter(pl.col("title").is_not_null())["topic_id"])
    assert set(found["topic_id"]) == begun
    assert found.filter(pl.col("title").is_not_null())["topic_id"].is_unique().all()
    assert placed(turns.reverse()).equals(found)
