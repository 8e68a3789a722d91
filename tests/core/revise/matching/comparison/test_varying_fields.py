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
def test_titles_that_name_many_things_show_nothing_about_what_varies(changed: float) -> None:
    _, wrong, _ = merged(*exports("a title that many share", changed, seed=1))
    assert wrong == 0


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
