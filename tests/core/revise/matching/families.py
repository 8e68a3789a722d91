"""Made stores whose duplicates are known: families of siblings, what agents remember, rewritten copies of both."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Topic = dict[str, Any]

NAMES = (
    "Anna",
    "Bruno",
    "Carla",
    "Dario",
    "Elena",
    "Felix",
    "Greta",
    "Hugo",
    "Irene",
    "Jonas",
    "Katya",
    "Lorenz",
    "Marta",
    "Nadia",
    "Oscar",
    "Paula",
)
PLACES = (
    "Lyon",
    "Oslo",
    "Graz",
    "Turin",
    "Cork",
    "Bergen",
    "Porto",
    "Ghent",
    "Malmo",
    "Split",
    "Kyoto",
    "Lima",
    "Perth",
    "Dakar",
    "Quito",
    "Hanoi",
)
LANGUAGES = (
    "italian",
    "spanish",
    "german",
    "french",
    "polish",
    "greek",
    "dutch",
    "danish",
    "czech",
    "finnish",
    "swedish",
    "turkish",
)
PLATFORMS = (
    "windows", "macos", "linux", "android", "ios", "freebsd", "chromeos",
)  # fmt: skip
SLOTS: dict[str, Callable[[int], str]] = {
    "name": lambda at: NAMES[at % len(NAMES)] + ("" if at < len(NAMES) else f" {_syllables(at)}"),
    "number": lambda at: str(at + 1),
    "date": lambda at: f"2026-{at // 28 % 12 + 1:02}-{at % 28 + 1:02}",
    "place": lambda at: PLACES[at % len(PLACES)] + ("" if at < len(PLACES) else f" {_syllables(at)}"),
    "language": lambda at: LANGUAGES[at % len(LANGUAGES)] + ("" if at < len(LANGUAGES) else f" {_syllables(at)}"),
    "platform": lambda at: PLATFORMS[at % len(PLATFORMS)] + ("" if at < len(PLATFORMS) else f" {at // 7}.{at % 7}"),
}
TEMPLATES = (
    ("Review of sprint {}", "What went well in sprint {} and what the team changes next"),
    ("Instant course {} 2.0", "Learn {} in four weeks with a tutor"),
    ("Renewal of the contract with {}", "The contract with {} ends in autumn and must be renewed"),
    ("{}", "Lives with Aya and goes to the school by the river, {}"),
    ("Trip to the coast, {}", "Tickets, hotel and insurance for the trip: {}"),
    ("Collected hits volume {}", "The best songs of the years, volume {}"),
)


@dataclass(frozen=True)
class Store:
    """Topics, and of each the number of the thing that it is about."""

    topics: list[Topic]
    things: list[int]


def family(slot: str, template: int, size: int, first: int = 0) -> list[Topic]:
    """Siblings that differ in one slot and have all their fields in common."""
    title, summary = TEMPLATES[template]
    values = [SLOTS[slot](first + at) for at in range(size)]
    fields = {"owner": "Aya", "price": 129, "project": f"atlas {template}", "due": "2026-05-01"}
    return [{"title": title.format(value), "summary": summary.format(value), "fields": fields} for value in values]


def meetings(size: int) -> list[Topic]:
    """One title and one summary, distinguished by a date alone."""
    return [
        {
            "title": "Weekly meeting of the board",
            "summary": "Notes of the meeting",
            "fields": {"day": SLOTS["date"](at)},
        }
        for at in range(size)
    ]


def deals(size: int) -> list[Topic]:
    """A deal a year with each of some customers."""
    return [
        {"title": f"Deal with {NAMES[at % 5]}", "fields": {"year": 2010 + at // 5, "owner": "Aya", "stage": "won"}}
        for at in range(size)
    ]


UNLIKE: dict[str, tuple[str, ...]] = {
    "Deal with Acme": ("Support contract for the Berlin office", "Forty laptops for the sales team", "A pilot in Oslo"),
    "Trip to Lisbon": ("Holiday in June with the children", "Conference in October", "Visiting Nadia over Easter"),
    "Dentist appointment": ("March 3 at nine", "April 9 at noon", "Second of June, bring the card"),
    "Mom's birthday": ("May 3", "May 13", "She wants a garden chair"),
    "Rex": ("A dog of the neighbours", "Our cat, eleven years old", "The old laptop in the hall"),
    "Invoice": ("Paid by transfer", "Unpaid since spring", "Sent twice by mistake"),
    "Favourite food": ("Sushi", "Pizza with capers", "Anything but fish"),
    "Reminder": ("Call mom", "Buy milk", "Water the plants"),
    "Meeting with Priya": ("Hiring plan for autumn", "The outage of last week", "Her move to Ghent"),
}
"""Titles that several things have, with what is said of each."""


def sayings(size: int) -> list[Topic]:
    """What was said of one person, all with one summary, every few weeks over a few years; some titles begin others."""
    verbs = ("moved to", "left", "lives in", "worked in", "visited", "plans to visit")
    return [
        {
            "title": f"Jonas {verbs[at % 6]} {SLOTS['place'](at // 6)}",
            "summary": "Mentioned on the phone",
            "created_at": datetime(2026, at % 12 + 1, at % 28 + 1, 10, tzinfo=UTC),
        }
        for at in range(size)
    ]


def namesakes(size: int = 3, fields: bool = False) -> list[Topic]:
    """Several things of one title each, distinguished by their summaries alone."""
    shared = {"owner": "Aya"} if fields else {}
    return [
        {"title": title, "summary": summary, "fields": shared}
        for title, summaries in UNLIKE.items()
        for summary in summaries[:size]
    ]


def memories() -> list[Topic]:
    """Facts, preferences, people, tasks and versions of which no two are the same."""
    drinks = ("tea", "coffee", "water", "juice", "milk", "cocoa")
    preferences = [
        {"title": f"{name} prefers {drink}", "summary": f"{name} said so on Monday", "fields": {"person": name}}
        for name in NAMES[:6]
        for drink in drinks[:3]
    ]
    facts = [
        {"title": f"Favourite drink of {name}", "fields": {"value": drink}}
        for name in NAMES[:6]
        for drink in drinks[3:]
    ]
    people = [
        {"title": name, "summary": "Engineer in the platform team", "fields": {"role": "engineer"}} for name in NAMES
    ]
    tasks = [
        {"title": f"{task} by {SLOTS['date'](at)}", "fields": {"assignee": NAMES[at % 4], "state": "open"}}
        for task in ("Water the plants", "Send the invoice", "Back up the laptop")
        for at in range(8)
    ]
    versions = [
        {"title": f"Scheduler v{one}.{two}", "summary": "Release notes"} for one in range(1, 4) for two in range(4)
    ]
    children = [
        {"title": f"{child}, child of {parent}", "fields": {"parent": parent, "city": "Lyon"}}
        for parent, child in zip(NAMES[:8], NAMES[8:], strict=True)
    ]
    return [*preferences, *facts, *people, *tasks, *versions, *children]


def households(count: int, seed: int) -> Store:
    """People of one list by household, who share an address and a telephone, and half of them in a second list."""
    chance = random.Random(seed)
    topics: list[Topic] = []
    things: list[int] = []
    for home in range(count):
        name = _syllables(chance.randrange(30)).title()
        shared = {"address": f"{home % 97 + 1} {_syllables(home % 12)} street", "phone": str(4_000_000 + home * 7919)}
        shared["city"] = PLACES[chance.randrange(10)]
        for first in chance.sample(NAMES, chance.choice((1, 1, 2, 3, 4))):
            mail = {"email": f"{first}.{name}@mail.example".lower()} if chance.random() < 0.7 else {}
            thing, summary = len(set(things)), f"Contact of the club in {shared['city']}"
            person = {"title": f"{first} {name}", "summary": summary, "fields": shared | mail, "sources": ["crm"]}
            topics.append(person)
            things.append(thing)
            if chance.random() < 0.5:
                known = {key: value for key, value in (shared | mail).items() if chance.random() < 0.6}
                title = chance.choice((f"{first} {name}", f"{name}, {first}", f"{first} {_typo(name, chance)}"))
                summary = f"Member since {chance.randrange(1999, 2025)}"
                topics.append({"title": title, "summary": summary, "fields": known, "sources": ["old"]})
                things.append(thing)
    return Store(topics, things)


REWRITINGS: dict[str, Callable[[str, random.Random], str]] = {
    "case": lambda text, _: text.upper(),
    "punctuation": lambda text, _: text.replace(" ", "  ") + ".",
    "order": lambda text, _: " ".join(reversed(text.split())),
    "typo": lambda text, chance: _typo(text, chance),
    "abbreviation": lambda text, _: " ".join(word if len(word) < 8 else word[:4] + "." for word in text.split()),
    "same": lambda text, _: text,
}


def crowd(size: int, seed: int = 3) -> list[Topic]:
    """Unrelated topics."""
    chance = random.Random(seed)
    stock = ["".join(chance.choices("bcdfghjklmnprstvaeiou", k=7)) for _ in range(3 * size + 6)]
    return [
        {
            "title": " ".join(chance.sample(stock, 3)),
            "summary": " ".join(chance.sample(stock, 6)),
            "fields": {"owner": chance.choice(NAMES)},
        }
        for _ in range(size)
    ]


def store(topics: Sequence[Topic], rewriting: str | None = None, every: int = 5, seed: int = 1) -> Store:
    """The topics, each a thing of its own, and a rewritten copy of every so many."""
    chance = random.Random(seed)
    copied = range(0, len(topics) if rewriting else 0, every)
    copies = [topics[at] | {"title": REWRITINGS[rewriting or "same"](topics[at]["title"], chance)} for at in copied]
    return Store([*topics, *copies], [*range(len(topics)), *copied])


def _syllables(number: int) -> str:
    parts = ("ba", "de", "fi", "go", "lu", "ma", "ne", "ri")
    return "".join(parts[number // 8**place % 8] for place in range(3))


def _typo(text: str, chance: random.Random) -> str:
    words = text.split()
    longest = max(range(len(words)), key=lambda at: len(words[at]))
    word = words[longest]
    at = chance.randrange(1, max(2, len(word) - 1))
    words[longest] = word[:at] + word[at + 1 :]
    return " ".join(words)
