"""Writes made records of several sources, each with errors and formats of its own, for `deduplication.py`.

    python tests/benchmarks/made_sources.py DIR

- `places`: gazetteers that measured coordinates themselves; some places share a name.
- `songs`: catalogues that number titles, or put the artist or the album into them, and write lengths in five ways.
- `films`: two lists with sequels and remakes.
- `books`: two shops with editions that share a title, and prices of their own.
- `products`: two shops with variants of one product, which some titles leave to the number of the model.
- `events`: two calendars with series of events, which write times in three ways, and repeat some events.
- `papers`: a clean list beside a scraped source, which repeats itself with errors (`made_catalogues`).
- `databases`: two databases of films with names of their own for all fields (`made_catalogues`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from made_catalogues import databases, papers
from packaged_records import Record, write

Thing = dict[str, Any]
_SOUNDS = [
    one + other
    for one in ("b", "br", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "st", "t", "v")
    for other in ("a", "e", "i", "o", "u", "ea")
]


class Names:
    """Words of which few are frequent, as in titles and names."""

    def __init__(self, chance: Random, words: int = 700) -> None:
        self._chance = chance
        self._words = ["".join(chance.choices(_SOUNDS, k=chance.choice((1, 2, 2, 3)))).title() for _ in range(words)]
        self._weights = [1 / (place + 4) for place in range(words)]

    def __call__(self, *sizes: int) -> str:
        """A name of one of so many words."""
        return " ".join(self._chance.choices(self._words, self._weights, k=self._chance.choice(sizes)))


def places(chance: Random, count: int = 820) -> Iterator[Record]:
    """Four gazetteers, two of which may add the region; a seventh of the places has the name of another one."""
    names, regions = Names(chance), [f"{Names(chance)(1)}" for _ in range(40)]
    known: list[str] = []
    for number in range(count):
        known.append(chance.choice(known) if known and chance.random() < 0.15 else names(1, 1, 2))
        region, at = chance.choice(regions), (chance.uniform(-60, 70), chance.uniform(-180, 180))
        titles = {
            "atlas": known[-1],
            "photos": known[-1],
            "wiki": f"{known[-1]}, {region}" if chance.random() < 0.4 else known[-1],
            "news": f"{known[-1]} ({region})" if chance.random() < 0.8 else known[-1],
        }
        for source, title in titles.items():
            if chance.random() < 0.8:
                fields = {
                    name: f"{value + chance.gauss(0, 0.02):.4f}" for name, value in zip(("lat", "lon"), at, strict=True)
                }
                yield f"{source}-{number}", str(number), title, "", fields, source


def songs(chance: Random, count: int = 1500) -> Iterator[Record]:
    """Five catalogues; each value is missing in one of eight, and a tenth of titles, artists and albums is misspelt."""
    names = Names(chance)
    artists = [names(1, 2, 2, 3) for _ in range(count // 6)]
    albums = {artist: [(names(1, 2, 3), chance.randrange(1965, 2014)) for _ in range(2)] for artist in artists}
    for number in range(count):
        artist = chance.choice(artists)
        album, year = chance.choice(albums[artist])
        song = {"title": names(1, 2, 3, 3, 4), "artist": artist, "album": album, "year": year,
                "seconds": chance.randrange(120, 420), "track": chance.randrange(1, 18)}  # fmt: skip
        for source in chance.sample(range(5), chance.choice((1, 1, 2, 2, 3, 4, 5))):
            title, fields = _song_of(source, song, chance)
            kept = {name: value for name, value in fields.items() if value and chance.random() > 0.12}
            summary = f"{kept.get('artist', '')} {kept.get('album', '')}".strip()
            yield f"{source}-{number}", str(number), title, summary, kept, str(source)


def _song_of(source: int, song: Thing, chance: Random) -> tuple[str, dict[str, str]]:
    title, artist, album = (
        _misspelt(song[name], chance) if chance.random() < 0.1 else song[name] for name in ("title", "artist", "album")
    )
    seconds, track, year = song["seconds"] + chance.choice((-1, 0, 0, 0, 1)), song["track"], song["year"]
    minutes, rest = divmod(seconds, 60)
    titles = (title, f"{track:03}-{title}", f"{title} - {album}", f"{artist} - {title}", title)
    lengths = (
        f"{minutes}m {rest}sec",
        str(seconds),
        str(seconds * 1000),
        f"{minutes}:{rest:02}",
        f"{seconds / 60:.3f}",
    )
    years = (str(year), str(year), str(year), f"'{year % 100:02}", f"{year % 100:02}")
    fields = {"artist": "" if source == 3 else artist, "album": f"{album} ({year})" if source == 4 else album,
              "track": "" if source == 1 else str(track), "length": lengths[source], "year": years[source]}  # fmt: skip
    return titles[source], fields


def films(chance: Random, count: int = 900) -> Iterator[Record]:
    """Two lists that share two fifths; one film in twelve is a sequel, one in twenty a remake under the same title."""
    names = Names(chance)
    people = [names(2) for _ in range(400)]
    made: list[Thing] = []
    for number in range(count):
        film = {"title": names(1, 2, 2, 3), "year": chance.randrange(1950, 2016), "director": chance.choice(people)}
        film |= {"actors": chance.sample(people, 3), "minutes": chance.randrange(80, 170)}
        if made and (kind := chance.random()) < 0.13:
            other = chance.choice(made)
            sequel = {"title": f"{other['title']} {chance.choice(('II', 'III', 'Returns'))}", "year": other["year"] + 3}
            film |= sequel if kind < 0.08 else {"title": other["title"], "year": other["year"] - 20}
        made.append(film)
        for source in _two_sources(chance, 0.4):
            late, title = int(source == "b" and chance.random() < 0.06), film["title"]
            actors = film["actors"] if source == "a" else chance.sample(film["actors"], 2)
            minutes = (
                f"{film['minutes']} min"
                if source == "a"
                else f"{film['minutes'] // 60} hr. {film['minutes'] % 60} min."
            )
            fields = {"year": str(film["year"] + late), "director": film["director"], "actors": ", ".join(actors),
                      "duration": minutes, "rating": f"{chance.uniform(3, 9):.1f}"}  # fmt: skip
            shown = f"{title} ({film['year']})" if source == "b" and chance.random() < 0.3 else title
            yield f"{source}-{number}", str(number), shown, film["director"], fields, source


def books(chance: Random, count: int = 1200) -> Iterator[Record]:
    """Two shops that share three tenths; one book in seven is another edition of one before it."""
    names = Names(chance)
    authors, publishers = [names(2) for _ in range(300)], [f"{names(1)} Press" for _ in range(40)]
    made: list[Thing] = []
    for number in range(count):
        book = {"title": names(1, 2, 3, 4), "author": chance.choice(authors), "pages": chance.randrange(90, 900)}
        if made and chance.random() < 0.15:
            other = chance.choice(made)
            book = other | {"pages": other["pages"] + chance.randrange(-40, 60)}
        made.append(book)
        stated = {"author": book["author"], "publisher": chance.choice(publishers), "pages": str(book["pages"]),
                  "year": str(chance.randrange(1985, 2016)), "isbn": str(chance.randrange(10**12, 10**13))}  # fmt: skip
        for source in _two_sources(chance, 0.3):
            fields = stated | {"price": f"${chance.uniform(5, 60):.2f}"}
            yield f"{source}-{number}", str(number), book["title"], book["author"], fields, source


def products(chance: Random, count: int = 1100) -> Iterator[Record]:
    """Two shops with variants of products, which titles may leave out where the model is stated, and own prices."""
    names, colours = Names(chance), ("Black", "White", "Red", "Blue", "Silver", "Pink")
    makers, sorts = [names(1) for _ in range(25)], [names(1, 2) for _ in range(30)]
    for number in range(count):
        maker, sort = chance.choice(makers), chance.choice(sorts)
        line, code = names(1, 2), f"{chance.choice('ABCDEFGH')}{chance.choice('KLMNOP')}{chance.randrange(100, 9999)}"
        cost = chance.uniform(5, 300)
        for end, variant in zip(chance.sample(range(10, 99), 6), colours[: chance.choice((1, 1, 2, 3))], strict=False):
            listed = chance.random()
            for source in ("a", "b") if listed < 0.35 else ("a",) if listed < 0.7 else ("b",):
                words = [maker, line, sort] if source == "a" else [maker, sort, line]
                model = f"{code}{'/' if source == 'b' and chance.random() < 0.4 else ''}{end}"
                price = f"{cost * chance.uniform(0.9, 1.1):.2f}"
                fields = {"maker": maker, "category": f"{source} {sort}", "price": price,
                          "model": model if chance.random() < 0.7 else ""}  # fmt: skip
                shown = " ".join((*words, variant) if not fields["model"] or chance.random() < 0.7 else words)
                kept = {name: value for name, value in fields.items() if value}
                yield f"{source}-{number}-{variant}", f"{number}-{variant}", shown, "", kept, source


def events(chance: Random, count: int = 1000) -> Iterator[Record]:
    """Two calendars that share a third; two in five events recur, up to ten times."""
    names = Names(chance)
    kinds, people = ("Review", "Planning", "Standup", "Interview", "Lunch"), [names(2) for _ in range(90)]
    for number in range(count):
        title, agenda = f"{names(1, 2)} {chance.choice(kinds)}", names(4, 5, 6) if chance.random() < 0.8 else ""
        first = datetime(2026, 1, 5, chance.randrange(7, 17), tzinfo=UTC) + timedelta(days=chance.randrange(150))
        guests, place = chance.sample(people, chance.choice((2, 3, 5, 8))), names(1)
        step = timedelta(days=chance.choice((1, 7, 7, 14)))
        for repeat in range(1 if chance.random() < 0.6 else chance.choice((2, 4, 6, 10))):
            at = first + repeat * step
            for copy, source in enumerate((*_two_sources(chance, 0.3), "a")[: 3 if chance.random() < 0.05 else -1]):
                fields = {"start": _written(at, source, chance), "place": place if chance.random() < 0.8 else "",
                          "guests": ", ".join(guest for guest in guests if chance.random() < 0.92)}  # fmt: skip
                kept = {name: value for name, value in fields.items() if value}
                shown = f"FW: {title}" if source == "b" and chance.random() < 0.12 else title
                yield f"{source}-{number}-{repeat}-{copy}", f"{number}-{repeat}", shown, agenda, kept, source


def _written(at: datetime, source: str, chance: Random) -> str:
    if source == "a":
        return (at + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S+01:00")
    if chance.random() < 0.5:
        return at.strftime("%Y-%m-%d %H:%M UTC")
    return (at - timedelta(hours=5)).strftime("%a %b %d %Y %I:%M %p EST")


def _two_sources(chance: Random, both: float) -> Sequence[str]:
    drawn = chance.random()
    return ("a", "b") if drawn < both else ("a",) if drawn < (1 + both) / 2 else ("b",)


def _misspelt(name: str, chance: Random) -> str:
    cut = chance.randrange(len(name))
    return name[:cut] + chance.choice(("", chance.choice("aeirst"), name[cut] * 2)) + name[cut + 1 :]


KINDS: dict[str, Callable[[Random], Iterator[Record]]] = {
    "places": places,
    "songs": songs,
    "films": films,
    "books": books,
    "products": products,
    "events": events,
    "papers": lambda chance: papers(chance, Names(chance)),
    "databases": lambda chance: databases(chance, Names(chance)),
}


def main(given: Sequence[str] | None = None) -> None:
    """Writes each kind with each seed."""
    parser = argparse.ArgumentParser(description="Write made records of several sources.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    args = parser.parse_args(given)
    for name, kind in KINDS.items():
        for seed in args.seeds:
            write(args.folder / f"{name}{seed}", kind(Random(seed)))


if __name__ == "__main__":
    main()
