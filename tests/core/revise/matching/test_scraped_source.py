"""A clean list beside a source that repeats itself with errors: what contradicts there is an error, not a namesake."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random
from typing import Any

from memstate_core.revise.matching.belief.belief import MAX_CONTRADICTED
from tests.core.revise.matching.corpora import dedupe

Topic = dict[str, Any]
PAPERS = 150


def papers(*, together: bool = False) -> list[Topic]:
    """A clean list, and up to three scraped entries of each paper; three in ten have a wrong year, or a longer title.

    Args:
        together: whether more titles are longer, and years are wrong beside half of these only.
    """
    chance, topics = Random(4), list[Topic]()

    def word() -> str:
        return "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(4))

    authors = [word() for _ in range(60)]
    for number in range(PAPERS):
        title, who = " ".join(word() for _ in range(4)), " ".join(chance.sample(authors, 2))
        year = chance.randrange(1980, 2010)
        fields = {"authors": who, "year": str(year)}
        topics.append({"title": title, "fields": fields, "sources": ["clean"], "id": f"{number:04}a"})
        for entry in range(chance.randrange(4)):
            longer, off = chance.random() < (0.58 if together else 0.3), chance.randrange(1, 4)
            wrong = longer and chance.random() < 0.5 if together else chance.random() < 0.3
            fields = {"authors": who, "year": str(year + wrong * off)}
            more = f" {word()}" if longer else ""
            topics.append(
                {"title": title + more, "fields": fields, "sources": ["scraped"], "id": f"{number:04}b{entry}"}
            )
    return topics


def merged(topics: list[Topic]) -> set[tuple[str, str]]:
    """The ids of the topics of each pair in one group."""
    found, ids = dedupe(topics), sorted(topic["id"] for topic in topics)
    groups = Counter(found.groups.tolist())
    members = {group: [name for name, of in zip(ids, found.groups, strict=True) if of == group] for group in groups}
    return {pair for names in members.values() for pair in combinations(names, 2)}


def test_entries_of_one_paper_are_merged_though_their_years_contradict_each_other() -> None:
    topics = papers()
    found, fields = merged(topics), {topic["id"]: topic["fields"] for topic in topics}
    assert {one[:4] == other[:4] for one, other in found} == {True}
    entries = Counter(topic["id"][:4] for topic in topics)
    assert len(found) > 0.75 * sum(count * (count - 1) // 2 for count in entries.values())
    contradicting = {pair for pair in found if fields[pair[0]]["year"] != fields[pair[1]]["year"]}
    assert {one[4] + other[4] for one, other in contradicting} == {"ab", "bb"}


def test_a_year_that_is_wrong_in_many_entries_of_one_source_makes_no_namesakes() -> None:
    topics = papers()
    found, ordered = dedupe(topics), sorted(topics, key=lambda topic: str(topic["id"]))
    reasons = [
        int(reason)
        for a, b, reason in zip(found.pairs.a, found.pairs.b, found.contradicts, strict=True)
        if ordered[a]["title"] == ordered[b]["title"] and ordered[a]["sources"] != ordered[b]["sources"]
    ]
    assert len(reasons) > PAPERS
    assert set(reasons) == {0}


def test_entries_of_one_paper_are_merged_where_the_fit_is_believed_of_pairs_with_the_clean_list_alone() -> None:
    topics = papers(together=True)
    assert dedupe(topics).decision.contradicted > MAX_CONTRADICTED
    found = merged(topics)
    assert {one[:4] == other[:4] for one, other in found} == {True}
    assert {one[4] + other[4] for one, other in found} == {"ab", "bb"}


def test_entries_without_a_paper_in_the_clean_list_stay_apart_by_their_years() -> None:
    """Nothing but the clean list vouches for entries that contradict each other."""
    topics = [topic for topic in papers() if topic["id"][4] == "b" or int(topic["id"][:4]) >= 30]
    alone = {pair for pair in merged(topics) if int(pair[0][:4]) < 30}
    years = {topic["id"]: topic["fields"]["year"] for topic in topics}
    assert alone
    assert all(years[one] == years[other] for one, other in alone)
