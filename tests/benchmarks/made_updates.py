"""Makes chats in which people say facts about themselves, and later that they changed: a labelled set with its truth.

    python tests/benchmarks/made_updates.py DIR [--people 15] [--seed 1] [--facts fresh]

`DIR/turns.jsonl` has the observations, `DIR/updates.jsonl` one line for each fact of a person: its questions, the turn
with what holds now (`newest`), those that it superseded (`superseded`), how it was said (`kind`) and to which `part` of
the facts it belongs, and `DIR/statements.jsonl` the fact and value of each turn that states one (`actor`, `text`,
`fact`, `value`). People talk of other things and of other people in between, and an assistant answers.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from changed_facts import FACTS, LEADS, REPLIES, SMALL_TALK, Fact
from fresh_facts import FRESH_FACTS
from vocabulary import PEOPLE

START = datetime(2025, 1, 6, 18, tzinfo=UTC)
SESSIONS = 60
KINDS = ("changed", "changed", "restated", "restated", "changed twice", "withdrawn")
"""How an update is said, drawn with equal chance."""

FACT_SETS = {"first": FACTS, "fresh": FRESH_FACTS}


@dataclass(frozen=True)
class Statement:
    """A turn that belongs to a fact.

    Attributes:
        session: when it is said.
        text: what is said.
        fact: the number of the fact.
        step: 0 for the first statement, then the updates; None about somebody else.
        value: what holds then; None if the fact holds no more, or is about somebody else.
    """

    session: int
    text: str
    fact: int
    step: int | None
    value: str | None = None


def statements(number: int, fact: Fact, kind: str, rng: Random) -> Iterator[Statement]:
    """What one person says of a fact over the sessions."""
    values = rng.sample(fact.values, 4)
    last = 2 if kind == "changed twice" else 1
    sessions = sorted(rng.sample(range(SESSIONS), last + 2))
    yield Statement(sessions[0], _filled(rng.choice(fact.stated), values[0], values[0]), number, 0, values[0])
    for step in range(1, last + 1):
        forms = {"restated": fact.restated, "withdrawn": fact.withdrawn}.get(kind, fact.changed)
        text = _filled(rng.choice(forms), values[step - 1], values[step])
        yield Statement(sessions[step], text, number, step, None if kind == "withdrawn" else values[step])
    yield Statement(sessions[-1], _filled(rng.choice(fact.others), values[3], values[3]), number, None)


def _filled(form: str, old: str, new: str) -> str:
    text = form.replace("<old>", old).replace("<new>", new)
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class Chat:
    """The turns of one person, the truth about their facts, and what each turn states."""

    turns: list[dict[str, Any]]
    updates: list[dict[str, Any]]
    statements: list[dict[str, Any]]


def chat(person: str, seed: int, facts: Sequence[Fact] = FACTS) -> Chat:
    """The chat of one person."""
    rng = Random(f"{seed}/{person}")
    kinds = [rng.choice(KINDS) for _ in facts]
    said = [each for number, fact in enumerate(facts) for each in statements(number, fact, kinds[number], rng)]
    turns: list[dict[str, Any]] = []
    stated: list[dict[str, Any]] = []
    places: dict[tuple[int, int], str] = {}
    for session in range(SESSIONS):
        own = [each for each in said if each.session == session]
        texts: list[Statement | str] = [*own, *rng.sample(SMALL_TALK, rng.randint(3, 6))]
        rng.shuffle(texts)
        for text in texts:
            turns += _exchange(person, session, len(turns), text, rng)
            if isinstance(text, Statement) and text.step is not None:
                places[text.fact, text.step] = turns[-2]["observation_id"]
                own_turn = {"actor": person, "text": turns[-2]["text"]}
                stated.append(own_turn | {"fact": facts[text.fact].name, "value": text.value})
    truth = [_truth(person, facts, number, kinds[number], places, rng) for number in range(len(facts))]
    return Chat(turns, truth, stated)


def _exchange(person: str, session: int, count: int, said: Statement | str, rng: Random) -> Iterator[dict[str, Any]]:
    text = said.text if isinstance(said, Statement) else said
    lead = rng.choice(LEADS)
    further = f" {rng.choice(SMALL_TALK)}" if rng.random() < 0.3 else ""
    whole = f"{lead}{text}{further}"
    at = START + timedelta(days=6 * session, minutes=count % 40)
    for turn, (actor, line) in enumerate([(person, whole), ("assistant", rng.choice(REPLIES))], count):
        yield {
            "observation_id": f"{person}-{turn}",
            "observed_at": (at + timedelta(seconds=turn)).isoformat(),
            "scope": {"type": "user", "id": person},
            "actor": actor,
            "session_id": f"{person}-{session}",
            "turn": turn,
            "text": line,
        }


def _truth(
    person: str, facts: Sequence[Fact], number: int, kind: str, places: dict[tuple[int, int], str], rng: Random
) -> dict[str, Any]:
    fact = facts[number]
    steps = [places[number, step] for step in range(3) if (number, step) in places]
    return {
        "scope": f"user:{person}",
        "fact": number,
        "part": "fresh" if facts is FRESH_FACTS else ("seen", "held back")[number % 2],
        "kind": kind,
        "now": [question.replace("<who>", person) for question in fact.now],
        "before": rng.choice(fact.before).replace("<who>", person),
        "newest": steps[-1],
        "superseded": steps[:-1],
    }


def write(folder: Path, people: int, seed: int, facts: Sequence[Fact] = FACTS) -> None:
    """Writes the turns and the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    chats = [chat(person, seed, facts) for person in PEOPLE[:people]]
    for part in fields(Chat):
        rows = [row for each in chats for row in getattr(each, part.name)]
        (folder / f"{part.name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main(given: Sequence[str] | None = None) -> None:
    """Writes one set."""
    parser = argparse.ArgumentParser(description="Make chats in which facts change.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--people", type=int, default=15, help=f"1 to {len(PEOPLE)}; each has every fact of the set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--facts", choices=FACT_SETS, default="first", help="the set of facts")
    args = parser.parse_args(given)
    write(args.folder, args.people, args.seed, FACT_SETS[args.facts])


if __name__ == "__main__":
    main()
