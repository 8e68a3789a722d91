"""Titles and summaries: phrases and sentences as written, and what they leave out."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstate_core.placement.text.describe import described
from memstate_core.placement.text.stop_words import stop_words
from tests.core.placement.talk import bag_of_words, talk, turn

POTTERY = [
    "Hey Mel! How are you?",
    "Wow, hi Caroline! I signed up for a pottery class at the Riverside Studio.",
    "A pottery class! That sounds awesome, Mel.",
    "Yes, my pottery class starts on 14 March, and I made a black bowl before.",
    "Thanks for telling me! Good luck.",
]
PARADE = [
    "Hey Caroline! What's new?",
    "Wow, hi Mel! I marched in the Pride parade last Friday.",
    "The Pride parade! How was it?",
    "The Pride parade was full of flags, and 300 people sang.",
    "That sounds awesome! Thanks for telling me.",
]
TRIP = [
    "Hey Mel! Any plans?",
    "Wow, hi! We are going on a camping trip to Lake Orta.",
    "A camping trip sounds awesome, Mel.",
    "The camping trip takes nine days, we rented two canoes at Lake Orta.",
    "Good luck! Thanks for telling me.",
]


NONE_TAKEN = pl.DataFrame(schema={"scope": pl.String, "title": pl.String})


def descriptions(
    *segments: list[str], actors: tuple[str, str] = ("Caroline", "Melanie"), taken: pl.DataFrame = NONE_TAKEN
) -> list[dict[str, str]]:
    """Title and summary of segments in which two people take turns."""
    rows = [
        turn(100 * place + at, text, actor=actors[at % 2]) | {"segment": place}
        for place, segment in enumerate(segments)
        for at, text in enumerate(segment)
    ]
    numbers = pl.Series("segment", [row.pop("segment") for row in rows], dtype=pl.Int64)
    turns = talk(*rows).with_columns(numbers)
    texts = turns["text"].fill_null("").to_list()
    return described(turns, bag_of_words(texts), bag_of_words, taken).sort("segment").to_dicts()


def test_a_title_is_a_phrase_as_it_was_written() -> None:
    titles = [row["title"] for row in descriptions(POTTERY, PARADE, TRIP)]
    assert "ottery class" in titles[0]
    assert "Pride parade" in titles[1]
    assert "amping trip" in titles[2] or "Lake Orta" in titles[2]
    written = " ".join(POTTERY + PARADE + TRIP).lower()
    assert all(phrase.lower() in written for title in titles for phrase in title.split(", "))


def test_names_of_speakers_and_their_short_forms_are_no_phrases() -> None:
    for row in descriptions(POTTERY, PARADE, TRIP):
        assert not {"mel", "melanie", "caroline"} & set(row["title"].lower().replace(",", "").split())


def test_a_word_that_begins_like_a_name_stays_a_word() -> None:
    segment = ["I bought a red car.", "Which car?", "The car is a Fiat.", "A nice car."]
    assert "car" in descriptions(segment, actors=("Caroline", "Ben"))[0]["title"].lower()


def test_interjections_and_thanks_lose() -> None:
    for row in descriptions(POTTERY, PARADE, TRIP):
        assert not {"wow", "hey", "thanks", "hi", "awesome"} & set(row["title"].lower().replace(",", "").split())


def test_segments_of_a_scope_have_different_titles() -> None:
    other = [*POTTERY[:4], "The glaze is cobalt blue, said the teacher."]
    titles = [row["title"] for row in descriptions(POTTERY, other, PARADE)]
    assert len(set(titles)) == 3


def test_a_title_that_another_topic_bears_is_not_given_again() -> None:
    (free, *_) = descriptions(POTTERY, PARADE, TRIP)
    borne = pl.DataFrame({"scope": ["user:aya", "user:ben"], "title": [free["title"].upper(), "Pride parade"]})
    (found, other, _) = descriptions(POTTERY, PARADE, TRIP, taken=borne)
    assert found["title"].startswith(free["title"])
    assert found["title"] != free["title"]
    assert "Pride parade" in other["title"]


def test_a_summary_gives_facts_in_the_order_of_speech_with_their_speakers() -> None:
    summary = descriptions(POTTERY, PARADE, TRIP)[1]["summary"].split("\n")
    assert any("300 people" in line for line in summary)
    assert any("marched in the Pride parade" in line for line in summary)
    assert not any("Thanks" in line or line.endswith("?") for line in summary)
    assert all(line.startswith(("Caroline: ", "Melanie: ")) for line in summary)
    places = [" ".join(PARADE).index(line.split(": ", 1)[1][:20]) for line in summary]
    assert places == sorted(places)


def test_a_summary_does_not_say_the_same_twice() -> None:
    repeated = ["The heron nests at pond seven."] * 4 + ["Two otters came to pond nine on 3 May.", "Fine."]
    summary = descriptions(repeated, POTTERY)[0]["summary"]
    assert summary.count("heron nests") == 1
    assert "otters" in summary


@pytest.mark.slow
def test_of_equal_sentences_the_first_is_quoted_in_every_run() -> None:
    """Sums of floats differ in their last digits from run to run, which must not decide between equal sentences."""
    equal = "The urban tower at Willow Ford broke again, so the glossary, ledger and harbour have to wait."
    talk = [equal, "The herons of the eastern pond nest in alders.", equal, "Two otters came to the southern weir."]
    others = [[f"The {word} kiln of the studio cracked near the {word} glaze."] * 3 for word in ("old", "new", "red")]
    summaries = {descriptions(talk, POTTERY, *others)[0]["summary"] for _ in range(25)}
    assert len(summaries) == 1
    assert summaries.pop().startswith("Caroline: The urban tower")


def test_sentences_of_one_turn_that_do_not_follow_each_other_are_marked() -> None:
    said = "Otters came to pond nine on 3 May. Well, well. Herons nest in 14 alders of the east shore."
    assert descriptions([said, "Fine."], POTTERY)[0]["summary"] == (
        "Caroline: Otters came to pond nine on 3 May. \u2026 Herons nest in 14 alders of the east shore."
    )


def test_code_and_tools_are_neither_title_nor_summary_where_people_speak() -> None:
    rows = [
        turn(0, "The invoice parser drops the last line.") | {"kind": "user_message"},
        turn(1, "def parse(lines):\n    return zygomorph(lines)") | {"kind": "tool_call"},
        turn(2, "Traceback zygomorph zygomorph zygomorph") | {"kind": "tool_result"},
        turn(3, "I fixed the invoice parser:\n```py\nzygomorph()\n```") | {"kind": "assistant_message"},
    ]
    turns = talk(*rows).with_columns(segment=pl.lit(0, pl.Int64))
    row = described(turns, bag_of_words(turns["text"].to_list()), bag_of_words, NONE_TAKEN).row(0, named=True)
    assert "nvoice parser" in row["title"]
    assert "zygomorph" not in row["title"] + row["summary"]


def test_a_single_turn_is_called_by_its_first_sentence() -> None:
    assert (
        descriptions(["We moved the Acme call to Friday. It rains."])[0]["title"] == "We moved the Acme call to Friday."
    )


def test_what_is_only_an_address_is_called_by_it() -> None:
    assert descriptions(["https://example.org/a"])[0]["title"] == "Https://example.org/a"


def test_nothing_said_is_untitled() -> None:
    row = descriptions(["", " "])[0]
    assert row["title"] == "untitled"
    assert row["summary"] is None


def test_other_scripts_have_titles_and_summaries_of_their_own() -> None:
    chinese = ["\u6211\u4eec\u53bb\u4e86\u9676\u827a\u8bfe\u3002", "\u9676\u827a\u8bfe\u5f88\u6709\u610f\u601d\u3002"]
    arabic = [
        "\u062f\u0631\u0633 \u0627\u0644\u0641\u062e\u0627\u0631 \u0627\u0644\u064a\u0648\u0645.",
        "\u062f\u0631\u0633 \u0627\u0644\u0641\u062e\u0627\u0631 \u062c\u0645\u064a\u0644.",
    ]
    german = ["Die Pfanne ist neu.", "Die neue Pfanne kommt aus Solingen.", "Aus Solingen? Die ist gut."]
    rows = descriptions(chinese, arabic, german)
    assert all(row["summary"] and row["title"] != "untitled" for row in rows)
    assert "\u0627\u0644\u0641\u062e\u0627\u0631" in rows[1]["title"]
    assert "Solingen" in rows[2]["title"] or "Pfanne" in rows[2]["title"]


def test_a_long_turn_gives_a_short_title_and_summary() -> None:
    row = descriptions(
        ["The archive of the mill was found in 1987 under a floor " * 200, "Good to know, the mill archive."]
    )[0]
    assert len(row["title"]) <= 81
    assert len(row["summary"]) <= 600


def test_the_language_of_a_scope_decides_what_is_empty() -> None:
    german, english = (
        "die pfanne ist neu und sie kommt aus der stadt",
        "the king will die of the plague if he is not with us in the city now",
    )
    words = pl.DataFrame(
        [(scope, word, 1) for scope, text in (("de", german), ("en", english)) for word in text.split()],
        schema=["scope", "word", "count"],
        orient="row",
    ).group_by("scope", "word").agg(pl.col("count").sum())  # fmt: skip
    empty = {(scope, word) for scope, word in stop_words(words).filter(~pl.col("vague")).select("scope", "word").rows()}
    assert ("de", "die") in empty
    assert ("en", "die") not in empty
    assert ("en", "the") in empty


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.text(max_size=40), min_size=1, max_size=4), min_size=1, max_size=4))
def test_every_segment_has_a_title_whatever_is_said(segments: list[list[str]]) -> None:
    rows = descriptions(*segments)
    assert len(rows) == len(segments)
    assert all(row["title"] and "\n" not in row["title"] and len(row["title"]) <= 81 for row in rows)
