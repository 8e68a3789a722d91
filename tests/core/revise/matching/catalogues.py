"""Catalogues of several sources in which different things share a title, such as packs of one product.

Each thing is listed by some of the sources; all but the first write titles and summaries with small errors and leave
fields out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.core.revise.matching.families import REWRITINGS, Store

Topic = dict[str, Any]
SUBSTANCES = (
    "Ibuprofen",
    "Metformin",
    "Lisinopril",
    "Atorvastatin",
    "Omeprazole",
    "Amlodipine",
    "Sertraline",
    "Ramipril",
)
DISHES = ("lasagne", "curry", "risotto", "goulash", "ramen", "paella", "chowder", "gratin")
STYLES = ("Quick mushroom", "Vegan pumpkin", "Oven salmon", "Slow spinach", "Spicy lentil", "Baked leek")
NAMES = ("Heart", "Road", "Sky", "Letters", "Machine", "Garden", "Fire", "Orchard")
MOODS = ("Midnight", "Broken", "Golden", "Paper", "Hollow", "Distant", "Electric", "Quiet")
BANDS = ("Red Foxes", "Blue Lanterns", "Silver Rivers", "Slow Engines", "Grey Sparrows", "Old Mirrors")


def medicine(chance: random.Random) -> Topic:
    """A pack of a medicine; the pack is in a field and in the summary."""
    substance, strength = chance.choice(SUBSTANCES), chance.choice((5, 10, 20, 25, 40, 50, 100, 200))
    pack = chance.choice((14, 28, 30, 50, 100))
    return {
        "title": f"{substance} {strength} mg {chance.choice(('tablets', 'capsules', 'drops'))}",
        "summary": f"Pack of {pack}, {chance.choice(('once', 'twice'))} a day with water.",
        "fields": {"substance": substance, "strength": strength, "pack": pack},
    }


def recipe(chance: random.Random) -> Topic:
    """A recipe; how long it takes is in a field, and something else in the summary."""
    return {
        "title": f"{chance.choice(STYLES)} {chance.choice(DISHES)}",
        "summary": f"Serves four. Fry onions, add the rest, simmer {chance.choice((20, 30, 40, 45, 60))} minutes.",
        "fields": {"minutes": chance.choice((25, 35, 50, 55, 75)), "serves": 4},
    }


def song(chance: random.Random) -> Topic:
    """A song; others of its title are by other bands."""
    band = chance.choice(BANDS)
    return {
        "title": f"{chance.choice(MOODS)} {chance.choice(NAMES)}",
        "summary": f"From an album by the {band}.",
        "fields": {"band": band, "seconds": chance.randrange(150, 330), "track": chance.randrange(1, 14)},
    }


THINGS: dict[str, Callable[[random.Random], Topic]] = {"medicines": medicine, "recipes": recipe, "songs": song}


def catalogues(kind: str, seed: int, shares: tuple[float, ...] = (0.65, 0.65), size: int = 300) -> Store:
    """Different things, each in a source with the share of that source."""
    chance, things, made = random.Random(f"{kind}/{seed}"), list[Topic](), Store([], [])
    while len(things) < size:
        thing = THINGS[kind](chance)
        things += [thing] if thing not in things else []
    listed = [
        (number, _copied(thing, chance) if source else thing, f"list {source}")
        for number, thing in enumerate(things)
        for source, share in enumerate(shares)
        if chance.random() < share
    ]
    for number, thing, source in chance.sample(listed, len(listed)):
        made.topics.append(thing | {"sources": [source]})
        made.things.append(number)
    return made


def _copied(thing: Topic, chance: random.Random) -> Topic:
    """A copy with one rewritten title, a summary that may lack a word, and fields of which some are left out."""
    words = thing["summary"].split()
    if chance.random() < 0.3:
        del words[chance.randrange(1, len(words))]
    return {
        "title": chance.choice([*REWRITINGS.values()])(thing["title"], chance),
        "summary": " ".join(words),
        "fields": {name: value for name, value in thing["fields"].items() if chance.random() < 0.85},
    }
