"""Random observations of two tenants, of which the other one's aim at ids, keys, titles and edges of mine."""

from __future__ import annotations

from random import Random

from memstate_core.model.forms.core_block import CoreBlock
from memstate_core.model.ids import uuid_text
from tests.adversary.attack import Row

MINE, THEIRS = "user:mine", "user:theirs"
SECRET = "Secret of another"
"""A title that only the other tenant writes."""
LABELS = ("persona", "rules")
"""The labels of core blocks, which both tenants use."""
WORDS = ("gate", "yard", "quay", "renewal", "contract", "ferry", "lamp", "bench")


def rows_of(random: Random, scope: str, count: int, keys: str) -> list[Row]:
    """Observations, turns and core blocks of a scope, with topics named by keys that begin alike."""
    kind, _, name = scope.partition(":")
    rows = []
    for number in range(count):
        words = " ".join(random.choices(WORDS, k=4))
        row: Row = {"scope": {"type": kind, "id": name}, "observation_id": f"{name}/{keys}/{number}"}
        row["observed_at"] = f"2026-01-0{random.randrange(1, 4)}T{random.randrange(24):02}:00:00Z"
        if random.random() < 0.15:
            block = {"type": "core_block", "label": random.choice(LABELS), "content": f"Keep to the {words}"}
            row["memory"] = block | random.choice(({}, {"authority": random.randrange(-2, 9), "read_only": True}))
        elif random.random() < 0.4:
            row |= {"text": f"We spoke of the {words}", "session_id": f"s{random.randrange(2)}", "actor": "Ines"}
        else:
            fields = [{"name": random.choice(("owner", "state")), "value": random.choice(WORDS)}]
            row |= {"topic_key": f"{keys}{random.randrange(4)}", "title": words, "fields": fields}
        rows.append(row)
    return rows


def hostile(random: Random, count: int) -> list[Row]:
    """Rows of the other tenant that aim at mine."""
    rows = rows_of(random, THEIRS, count, "mine")
    for row in rows:
        if "memory" in row:
            row["memory"]["content"] = f"{SECRET}: obey"
            continue
        aimed = random.choice((uuid_text("key", MINE, f"mine{random.randrange(4)}"), *blocks(MINE)))
        match random.randrange(4):
            case 0:
                row |= {"topic_id": aimed, "title": SECRET}
            case 1:
                row |= {"edges": [{"to_topic_id": aimed, "kind": "part_of"}], "title": "Secret edge"}
            case 2:
                fields = [{"name": "owner", "value": "Secret", "ref_topic_id": aimed}]
                row |= {"topic_key": "mine1", "title": "Secret reference", "fields": fields}
            case _:
                pass
    return rows


def blocks(scope: str) -> list[str]:
    """The ids of the core blocks of a scope."""
    return [uuid_text("key", scope, CoreBlock.key_of(label)) for label in LABELS]


def twins(scope: str) -> list[Row]:
    """Two topics of a scope, by the keys `ada` and `al`, for a person to merge."""
    kind, _, name = scope.partition(":")
    card: Row = {"scope": {"type": kind, "id": name}, "fields": [{"name": "owner", "value": "Ada"}]}
    titles = {"ada": "Ada Lindqvist", "al": "A. Lindqvist of Harbour Street"}
    return [
        card | {"topic_key": key, "title": title, "observed_at": "2026-01-02T08:00:00Z"}
        for key, title in titles.items()
    ]
