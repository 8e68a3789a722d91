"""Two more kinds for `made_sources.py`: a scraped source beside a clean one, and two databases with their own names.

Both write what its other kinds do: records of several sources, of which some are of one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from packaged_records import Record

_VENUES = {
    "VLDB": ("Very Large Data Bases", "Proc. VLDB", "in VLDB Conference"),
    "SIGMOD Conference": ("SIGMOD", "Proceedings of ACM SIGMOD", "International Conference on Management of Data"),
    "TODS": ("ACM Transactions on Database Systems", "ACM Trans. Database Syst.", "Transactions on Databases"),
    "SIGMOD Record": ("ACM SIGMOD Record", "SIGMOD Rec.", "Sigmod Record,"),
}


def papers(chance: Random, names: Callable[..., str], count: int = 1300) -> Iterator[Record]:
    """A clean list with two papers in three, up to four scraped entries of each; columns have one title for years."""
    people = [names(2) for _ in range(500)]
    columns = [(names(3), chance.choice(people)) for _ in range(12)]
    for number in range(count):
        column = chance.choice(columns) if chance.random() < 0.05 else None
        title, authors = names(4, 5, 6, 7), chance.sample(people, chance.choice((1, 2, 2, 3)))
        title, authors = (column[0], [column[1]]) if column else (title, authors)
        year, venue = chance.randrange(1990, 2005), chance.choice([*_VENUES])
        known = {"authors": ", ".join(authors), "venue": venue, "year": str(year)}
        if chance.random() < 0.65:
            yield f"list-{number}", str(number), title, known["authors"], known, "list"
        for entry in range(chance.choice((0, 1, 1, 2, 3, 4))):
            shown, fields = _scraped(title, authors, venue, year, chance)
            yield f"web-{number}-{entry}", str(number), shown, fields["authors"], fields, "web"


def _scraped(title: str, authors: list[str], venue: str, year: int, chance: Random) -> tuple[str, dict[str, str]]:
    """An entry with initials, other venues, missing and wrong years, and titles that are cut or misread."""
    initials = [f"{name[0]} {name.split()[-1]}" for name in authors]
    shown = initials if chance.random() < 0.7 else [*initials[:1], "et al"] if len(authors) > 1 else authors
    words = title.split()
    if chance.random() < 0.12:
        words = [*words[: max(3, len(words) - 2)], "..."]
    if chance.random() < 0.15:
        place = chance.randrange(len(words))
        words[place] = words[place].replace("l", "1").replace("o", "0")
    fields = {"authors": ", ".join(shown)}
    if chance.random() < 0.75:
        fields["venue"] = chance.choice(_VENUES[venue]) if chance.random() < 0.9 else chance.choice([*_VENUES])
    if chance.random() < 0.55:
        fields["year"] = str(year + (chance.choice((-1, 1, 2)) if chance.random() < 0.15 else 0))
    return " ".join(words), fields


_NAMES = {
    "archive": {"year": "year", "director": "director", "country": "country", "cast": "cast"},
    "guide": {"year": "released", "director": "directed by", "country": "made in", "cast": "starring"},
}


def databases(chance: Random, names: Callable[..., str], count: int = 1100) -> Iterator[Record]:
    """Two databases that share half of their films and no name of a field; one film in six has a title of another."""
    people, countries = [names(2) for _ in range(400)], [names(1) for _ in range(12)]
    titles: list[str] = []
    for number in range(count):
        titles.append(chance.choice(titles) if titles and chance.random() < 0.16 else names(1, 2, 2, 3))
        said = {"year": str(chance.randrange(1950, 2016)), "director": chance.choice(people)}
        said |= {"country": chance.choice(countries), "cast": ", ".join(chance.sample(people, 3))}
        both = chance.random()
        for source in ("archive", "guide") if both < 0.5 else ("archive",) if both < 0.75 else ("guide",):
            late = {"year": str(int(said["year"]) + 1)} if source == "guide" and chance.random() < 0.06 else {}
            kept = {name: value for name, value in (said | late).items() if chance.random() < 0.9}
            fields = {_NAMES[source][name]: value for name, value in kept.items()}
            yield f"{source}-{number}", str(number), titles[-1], "", fields, source
