"""What differs between duplicate-free sources: what each sets or spells in its own way, and what changed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from memstate_core.revise.matching.comparison.contradictions import REASONS
from tests.core.revise.matching.corpora import dedupe
from tests.core.revise.matching.exports import FORMS, exports

Topic = dict[str, Any]
SHARED = [form for form in FORMS if form != "a title that many share"]


def merged(topics: list[Topic], stated: list[str]) -> tuple[int, int, int]:
    """Merged pairs that state the same, those that do not, and how many pairs state the same in all."""
    order = np.argsort([topic["id"] for topic in topics])
    says, groups = np.array(stated)[order], dedupe(topics).groups
    grouped, same = (np.triu(one[:, None] == one[None, :], 1) for one in (groups, says))
    return int((grouped & same).sum()), int((grouped & ~same).sum()), int(same.sum())


@pytest.mark.parametrize("changed", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("form", SHARED)
def test_facts_that_changed_between_two_exports_stay_apart_and_others_are_merged(form: str, changed: float) -> None:
    right, wrong, every = merged(*exports(form, changed, seed=1))
    assert wrong == 0
    assert right >= 0.95 * every > 0


@pytest.mark.parametrize("changed", [0.1, 0.6])
def test_facts_under_a_title_that_many_share_stay_apart(changed: float) -> None:
    assert merged(*exports("a title that many share", changed, seed=1))[1] == 0


# Two catalogues of one stock

THINGS, MANY, FEW = 240, 60, 6
KINDS = ("sofa", "fridge", "lamp", "rug")
Says = Callable[[Random, str], str]


def catalogues(second: Says, makers: int) -> list[Topic]:
    """Things of two catalogues, each after its counterpart: the second names their kinds in its own way.

    Equal makers are evidence if there are many.
    """
    chance = Random(4)
    words = ["".join(chance.choices("abcdefghijklmnopr", k=7)) for _ in range(300)]
    topics = []
    for _ in range(THINGS):
        title, maker, kind = " ".join(chance.sample(words, 3)), chance.choice(words[:makers]), chance.choice(KINDS)
        for source, says in (("north", kind), ("south", second(chance, kind))):
            fields = {"maker": maker, "kind": says}
            topics.append({"id": f"t{len(topics):04}", "title": title, "sources": [source], "fields": fields})
    return topics


def contradicted(topics: list[Topic]) -> list[bool]:
    """Whether each thing's kinds contradict each other."""
    found = dedupe(topics)
    same = found.pairs.a // 2 == found.pairs.b // 2
    assert same.sum() == THINGS
    assert {REASONS[code] for code in found.contradicts[same]} <= {"", "field"}
    return [bool(code) for code in found.contradicts[same][np.argsort(found.pairs.a[same])]]


def otherwise(topics: list[Topic]) -> list[bool]:
    """Whether each thing's kinds are written differently; a third of them, about."""
    kinds = [topic["fields"]["kind"] for topic in topics]
    differ = [one != other for one, other in zip(kinds[::2], kinds[1::2], strict=True)]
    assert 0.1 * THINGS < sum(differ) < 0.4 * THINGS
    return differ


def own_word(_: Random, kind: str) -> str:
    return {"sofa": "couch", "fridge": "icebox", "lamp": "light", "rug": "carpet"}[kind]


def sometimes_own_word(chance: Random, kind: str) -> str:
    return own_word(chance, kind) if chance.random() < 0.3 else kind


def another_kind(chance: Random, kind: str) -> str:
    return chance.choice(KINDS) if chance.random() < 0.4 else kind


def new_word(chance: Random, kind: str) -> str:
    return "".join(chance.choices("abcdefgh", k=6)) if chance.random() < 0.3 else kind


@pytest.mark.parametrize("makers", [MANY, FEW])
@pytest.mark.parametrize("second", [own_word, sometimes_own_word])
def test_a_source_may_have_words_of_its_own(second: Says, makers: int) -> None:
    assert contradicted(catalogues(second, makers)) == [False] * THINGS


@pytest.mark.parametrize("second", [another_kind, new_word])
def test_other_words_contradict_where_sources_mostly_state_the_same(second: Says) -> None:
    """Both could have stated what the other does; nothing but the title agrees, and a maker that many have."""
    topics = catalogues(second, FEW)
    assert contradicted(topics) == otherwise(topics)


@pytest.mark.parametrize("second", [another_kind, new_word])
def test_they_are_errors_where_rare_values_agree(second: Says) -> None:
    topics = catalogues(second, MANY)
    assert any(otherwise(topics))
    assert contradicted(topics) == [False] * THINGS


@pytest.mark.parametrize(("makers", "expected"), [(MANY, ""), (FEW, "summary")])
def test_summaries_of_one_template_contradict_unless_rare_values_agree(makers: int, expected: str) -> None:
    topics, chance = catalogues(own_word, makers), Random(5)
    for topic in topics:
        name = "".join(chance.choices("abcdefghijklmnopr", k=7))
        topic["fields"] = {"maker": topic["fields"]["maker"]}
        topic["summary"] = f"Sold since spring in the shop of {name}"
    found = dedupe(topics)
    same = found.pairs.a // 2 == found.pairs.b // 2
    assert {REASONS[code] for code in found.contradicts[same]} == {expected}


def test_titles_that_a_source_has_twice_show_nothing_about_what_varies() -> None:
    """Of two things of one title, pages and sizes differ; of others hardly any pages do, so these are no errors."""
    topics = catalogues(own_word, MANY)
    changed = [place for place in range(THINGS // 2) if place % 20 == 0]
    for place, topic in enumerate(topics):
        thing, source = divmod(place, 2)
        topic["fields"] |= {"pages": 100 + thing + (thing in changed and source), "size": 10}
    for thing in range(THINGS // 2, THINGS, 2):
        for one, other in zip(topics[2 * thing : 2 * thing + 2], topics[2 * thing + 2 : 2 * thing + 4], strict=True):
            other["title"] = one["title"]
            other["fields"] |= {"maker": one["fields"]["maker"], "size": 20}
    assert [place for place, apart in enumerate(contradicted(topics)) if apart] == changed
