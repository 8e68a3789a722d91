"""Made stores in which different things share a title and, by chance, all else that is said of them.

Each kind makes so many things; a share of them is noted again, mostly word for word, some with another value in one
field.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.core.revise.matching.families import Store, Topic

Kind = Callable[[Random], Callable[[], Topic]]
"""Draws what all things have in common, and returns what draws one thing."""
DAYS, COLOURS = ("Mon", "Tue", "Wed", "Thu", "Fri"), ("red", "blue", "green", "black", "white", "grey", "pink", "navy")


SIZES = ("XS", "S", "M", "L", "XL")


def noted_again(kind: Kind, size: int, rate: float, seed: int, error: float = 0.2, gaps: float = 0.0) -> Store:
    """Things of one kind, and a share of them again.

    Args:
        kind: what is drawn.
        size: how many things.
        rate: the share that is noted again.
        seed: of all draws.
        error: the share of the latter of which one field has the value of another thing.
        gaps: the share of values that are left out.
    """
    chance = Random(seed)
    draw = kind(chance)
    topics = [draw() for _ in range(size)]
    again = chance.sample(range(size), int(size * rate))
    for at in again:
        fields = dict(topics[at].get("fields", {}))
        if fields and chance.random() < error:
            name = chance.choice([*fields])
            fields[name] = topics[chance.randrange(size)]["fields"][name]
        topics.append(topics[at] | {"fields": fields})
    for topic in topics if gaps else ():
        topic["fields"] = {name: value for name, value in topic["fields"].items() if chance.random() >= gaps}
    things, order = [*range(size), *again], chance.sample(range(len(topics)), len(topics))
    return Store([topics[at] for at in order], [things[at] for at in order])


def people(*sizes: int, names: tuple[int, int] = (25, 50), summary: str | None = None) -> Kind:
    """People of popular first and last names, with one field for each number of values, from likely to seldom."""

    def kind(chance: Random) -> Callable[[], Topic]:
        first, last = (_words(chance, count) for count in names)
        known = {f"part{place}": _words(chance, count) for place, count in enumerate(sizes)}

        def draw() -> Topic:
            fields = {name: _popular(chance, values, 0.5) for name, values in known.items()}
            said = summary and summary.format(**fields)
            return {"title": f"{_popular(chance, first)} {_popular(chance, last)}", "summary": said, "fields": fields}

        return draw

    return kind


def residents(year: bool, regional: bool = False) -> Kind:
    """People with a town, its postcodes and its region, which depend on each other; some names live in few towns."""

    def kind(chance: Random) -> Callable[[], Topic]:
        first, last, towns = _words(chance, 25), _words(chance, 40), _words(chance, 24)
        home = {name: chance.sample(towns, 3) for name in last}

        def draw() -> Topic:
            name = _popular(chance, last)
            local = regional and chance.random() < 0.8
            town = chance.choice(home[name]) if local else _popular(chance, towns, 0.5)
            at = towns.index(town)
            fields = {"town": town, "zip": str(10_000 + at * 100 + chance.randrange(3)), "region": COLOURS[at % 4]}
            born = {"year": str(chance.randrange(1940, 2000))} if year else {}
            return {"title": f"{_popular(chance, first)} {name}", "fields": fields | born}

        return draw

    return kind


def products(lines: int, brands: int = 1) -> Kind:
    """Sizes and colours of product lines, each with one description."""

    def kind(chance: Random) -> Callable[[], Topic]:
        names, makers = _words(chance, lines), _words(chance, 50)
        offer = {name: chance.sample(makers, brands) for name in names}

        def draw() -> Topic:
            name = _popular(chance, names, 0.7)
            brand = chance.choice(offer[name])
            fields = {
                "brand": brand,
                "size": chance.choice(("XS", "S", "M", "L", "XL")),
                "colour": chance.choice(COLOURS),
            }
            summary = f"The {name} shirt by {brand} is made of soft cotton from fair farms and lasts for years"
            return {"title": f"{name} shirt", "summary": summary, "fields": fields}

        return draw

    return kind


def songs(chance: Random) -> Callable[[], Topic]:
    """Recordings of popular songs, some on an album that each artist has."""
    titles, artists = (
        [f"{one} {other}" for one in _words(chance, 12) for other in _words(chance, 12)],
        _words(chance, 40),
    )
    albums = {artist: [*_words(chance, 3), "Greatest Hits"] for artist in artists}

    def draw() -> Topic:
        title = _popular(chance, titles, 0.8)
        artist = artists[(titles.index(title) * 7 + chance.randrange(3)) % 40] if chance.random() < 0.5 else None
        artist = artist or chance.choice(artists)
        fields = {"artist": artist, "price": chance.choice(("0.99", "1.29")), "year": str(chance.randrange(1990, 2015))}
        return {"title": title, "summary": chance.choice(albums[artist]), "fields": fields}

    return draw


def meetings(chance: Random) -> Callable[[], Topic]:
    """Meetings of teams with their usual room."""
    teams = _words(chance, 30)

    def draw() -> Topic:
        team = _popular(chance, teams, 0.6)
        room = f"Room {teams.index(team) % 8}" if chance.random() < 0.8 else f"Room {chance.randrange(8)}"
        fields = {"day": chance.choice(DAYS), "hour": f"{chance.randrange(9, 17)}:00", "room": room}
        return {"title": f"Weekly meeting of team {team}", "fields": fields}

    return draw


def invoices(chance: Random) -> Callable[[], Topic]:
    """Invoices of customers with a usual amount."""
    customers, amounts = _words(chance, 120), ("49.90", "99.00", "199.00")

    def draw() -> Topic:
        customer = _popular(chance, customers, 0.5)
        usual = amounts[customers.index(customer) % 3]
        amount = usual if chance.random() < 0.85 else chance.choice(amounts)
        fields = {"amount": amount, "due": chance.choice(("1", "15")), "month": str(chance.randrange(1, 13))}
        return {"title": f"Invoice of {customer}", "fields": fields}

    return draw


def facts(chance: Random) -> Callable[[], Topic]:
    """What an agent notes: no two facts are the same."""
    names, things = _words(chance, 60), _words(chance, 400)
    places = iter(chance.sample(range(len(names) * len(things)), 8_000))

    def draw() -> Topic:
        at = next(places)
        title = f"{names[at % len(names)]} prefers {things[at // len(names)]}"
        summary = f"Said on a {chance.choice(DAYS)} that {chance.choice(things)} and {chance.choice(things)} matter"
        return {"title": title, "summary": summary, "fields": {"confidence": chance.choice(("high", "low"))}}

    return draw


KINDS: dict[str, Kind] = {
    "people of two fields": people(20, 60),
    "people of three fields": people(30, 20, 60),
    "people with a summary": people(20, 60, summary="Works as {part0}"),
    "residents": residents(year=True),
    "residents without a year": residents(year=False),
    "residents of regions": residents(year=True, regional=True),
    "products": products(40),
    "products of small lines": products(150),
    "products of brands": products(40, brands=4),
    "songs": songs,
    "meetings": meetings,
    "invoices": invoices,
}


def _popular(chance: Random, values: list[str], power: float = 1.0) -> str:
    return chance.choices(values, [1 / (place + 2) ** power for place in range(len(values))])[0]


def _words(chance: Random, count: int) -> list[str]:
    found: set[str] = set()
    while len(found) < count:
        found.add("".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3)).title())
    return chance.sample(sorted(found), count)


def counted_pairs(made: Store, groups: Any) -> tuple[int, int]:
    """Pairs in one group, and how many of them are of one thing."""
    sizes: dict[Any, int] = {}
    both: dict[Any, int] = {}
    for group, thing in zip(groups.tolist(), made.things, strict=True):
        sizes[group] = sizes.get(group, 0) + 1
        both[group, thing] = both.get((group, thing), 0) + 1
    merged, right = (sum(count * (count - 1) // 2 for count in counts.values()) for counts in (sizes, both))
    return merged, right
