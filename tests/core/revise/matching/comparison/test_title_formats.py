"""Sources that write fields into their titles: what their titles add is no contradiction; siblings stay siblings."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from memstate_core.revise.matching.deduplication import Deduplicated
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.families import NAMES, PLACES, SLOTS, TEMPLATES, family

Topic = dict[str, Any]


def _word(chance: random.Random) -> str:
    return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(4))


def albums(count: int, seed: int = 3) -> list[tuple[str, list[Topic]]]:
    """Songs of albums as three catalogues list them: by title, as `artist - title`, as `title (album)`."""
    chance, songs = random.Random(seed), []
    for number in range(count):
        artist, album = (f"{_word(chance)} {_word(chance)}" for _ in range(2))
        year = 1960 + number % 50
        for track in range(1, 4):
            title = f"{_word(chance)} {_word(chance)} {_word(chance)}"
            common = {"year": year, "track": track}
            listed = [
                {"title": f"{track:03}-{title}", "fields": {**common, "artist": artist, "album": album}},
                {"title": f"{artist} - {title}", "fields": {**common, "album": album}},
                {"title": f"{title} ({album})", "fields": {**common, "artist": artist}},
            ]
            songs.append((title, [song | {"sources": [f"shop{n}"]} for n, song in enumerate(listed)]))
    return songs


def found_among(things: list[list[Topic]]) -> tuple[Deduplicated, list[int], int]:
    """The result, the thing of each topic, and how many pairs of different things were merged."""
    rows = [(thing, topic) for thing, topics in enumerate(things) for topic in topics]
    found = dedupe([{"id": f"t{number:05}", **topic} for number, (_, topic) in enumerate(rows)])
    known = [thing for thing, _ in rows]
    groups = found.groups.tolist()
    wrong = sum(groups[a] == groups[b] and known[a] != known[b] for a, b in combinations(range(len(known)), 2))
    return found, known, wrong


def merged_share(found: Deduplicated, things: list[int]) -> float:
    """The share of pairs of one thing that are in one group."""
    groups = found.groups.tolist()
    same = [groups[a] == groups[b] for a, b in combinations(range(len(things)), 2) if things[a] == things[b]]
    return float(np.mean(same))


def contradicted(found: Deduplicated, things: list[int]) -> float:
    """The share of candidate pairs of one thing whose titles contradict."""
    known = np.array(things)
    same = known[found.pairs.a] == known[found.pairs.b]
    return float((found.contradicts[same] == 1).mean())


def test_fields_in_titles_contradict_nothing() -> None:
    found, things, wrong = found_among([listed for _, listed in albums(60)])
    assert wrong == 0
    assert merged_share(found, things) > 0.9
    assert contradicted(found, things) < 0.05


def test_what_few_titles_of_a_source_add_is_no_format() -> None:
    """One list gives no artists; in a tenth of its titles it does."""
    things: list[list[Topic]] = []
    for number, (title, (first, _, last)) in enumerate(albums(60)):
        artist = first["fields"]["artist"]
        bare = {"title": title if number % 10 else f"{artist} - {title}", "sources": ["shop1"]}
        things.append([bare | {"fields": {"year": first["fields"]["year"]}}, last])
    found, known, wrong = found_among(things)
    assert wrong == 0
    assert 0.05 < contradicted(found, known) < 0.15


def clean(count: int) -> list[list[Topic]]:
    """Things that two lists have in common, written alike, so that both are found to be free of duplicates."""
    chance = random.Random(11)
    things = []
    for number in range(count):
        title = f"{_word(chance)} {_word(chance)} {_word(chance)}"
        listed = {"title": title, "fields": {"code": f"{number:05}x"}}
        things.append([listed | {"sources": [source]} for source in ("crm", "list")])
    return things


@pytest.mark.parametrize("template", range(len(TEMPLATES)))
@pytest.mark.parametrize("slot", sorted(SLOTS))
def test_siblings_divided_over_two_clean_sources_stay_apart(slot: str, template: int) -> None:
    siblings = [
        [topic | {"sources": ["crm" if number % 2 else "list"]}]
        for number, topic in enumerate(family(slot, template, 7))
    ]
    found, _, wrong = found_among([*clean(200), *siblings])
    assert found.origins.distinct.all()
    assert wrong == 0


def test_a_misspelt_title_among_copies_in_five_sources_is_no_sibling() -> None:
    chance = random.Random(9)
    titles = [f"{_word(chance)} {_word(chance)} {_word(chance)}" for _ in range(60)]
    shops = [f"shop{n}" for n in range(5)]
    copies: list[list[Topic]] = [
        [{"title": title, "fields": {"code": f"{number:05}x"}, "sources": [shop]} for shop in shops]
        for number, title in enumerate(titles)
    ]
    for listed in copies:
        listed[2]["title"] = "x" + listed[2]["title"][1:]
    found, known, wrong = found_among(copies)
    assert wrong == 0
    assert merged_share(found, known) == 1.0


@pytest.mark.parametrize("slot", ["name", "number", "place", "language"])
def test_siblings_divided_over_five_clean_sources_stay_apart(slot: str) -> None:
    shops = ["crm", "list", "shop2", "shop3", "shop4"]
    siblings = [[topic | {"sources": [shops[n % 5]]}] for n, topic in enumerate(family(slot, 2, 12))]
    alike = [[listed[0] | {"sources": [shop]} for shop in shops] for listed in clean(150)]
    found, _, wrong = found_among([*alike, *siblings])
    assert found.origins.distinct.all()
    assert wrong == 0


def test_siblings_that_name_each_other_in_fields_stay_apart() -> None:
    """The first of each series lacks `previous`, and the second names the first in it."""
    series = []
    for number in range(20):
        where = f"{PLACES[number % len(PLACES)]} {number}"
        for at in range(4):
            name = f"{NAMES[at]} of {where}"
            fields = {"owner": "Aya", "place": where} | ({"previous": NAMES[at - 1]} if at else {}) | {
                "next": NAMES[at + 1]
            }  # fmt: skip
            series.append([{"title": name, "fields": fields, "sources": ["crm" if at % 2 else "list"]}])
    found, _, wrong = found_among([*clean(200), *series])
    assert found.origins.distinct.all()
    assert wrong == 0
