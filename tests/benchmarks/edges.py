"""What following edges adds: whether the topics that a question wants are among the candidates.

Two kinds of stores, each imported and kept by the real program and asked in this process, with *structural* and
without: conversations with marked turns (the topics of those turns are wanted), whose edges memstate infers, and a made
store in which each observation names one relation to another topic; questions name a topic and its relation, and want
the topic at the other end, with whose words they have nothing in common.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from ranking import Floats, bootstrapped
from updates import prepared
from vocabulary import ADJECTIVES, NOUNS, PLACES

from memstate_core.retrieve.query import STAGES, Question, answer
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home

CUTS = (1, 3, 5, 8)
RELATIONS = {"part_of": "What is the <title> part of?", "depends_on": "Which thing does the <title> depend on?",
             "assigned_to": "Where was the <title> assigned?"}  # fmt: skip
SCOPE = "project:made"


@dataclass(frozen=True)
class Wanted:
    """A question and the observations whose topics it wants."""

    text: str
    scope: str
    observations: frozenset[str]


def made(folder: Path, topics: int, seed: int) -> list[Wanted]:
    """Writes observations of topics with one edge each, and returns the questions about the edges."""
    rng = Random(seed)
    triples = rng.sample(range(len(ADJECTIVES) * len(NOUNS) * len(PLACES)), topics)
    titles = [_title(number) for number in triples]
    others, kinds = rng.sample(range(topics), topics), rng.choices(list(RELATIONS), k=topics)
    rows = [_row(at, titles, others[at], kinds[at]) for at in range(topics)]
    (folder / "turns.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [
        Wanted(RELATIONS[kinds[at]].replace("<title>", titles[at]), SCOPE, frozenset({f"o{others[at]}"}))
        for at in range(topics)
        if others[at] != at
    ]


def _title(number: int) -> str:
    rest, place = divmod(number, len(PLACES))
    adjective, noun = divmod(rest, len(NOUNS))
    return f"{ADJECTIVES[adjective].title()} {NOUNS[noun]} at {PLACES[place]}"


def _row(at: int, titles: Sequence[str], other: int, kind: str) -> dict[str, object]:
    return {
        "observation_id": f"o{at}",
        "scope": {"type": "project", "id": "made"},
        "observed_at": "2026-01-02T00:00:00Z",
        "topic_key": f"t{at}",
        "title": titles[at],
        "edges": [{"to_topic_key": f"t{other}", "kind": kind}] if other != at else [],
    }


def marked(folder: Path) -> list[Wanted]:
    """The questions of a conversation benchmark."""
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    return [Wanted(row["question"], ":".join(row["scope"].values()), frozenset(row["evidence"])) for row in rows]


def recalls(home: Path, wanted: Sequence[Wanted], stages: frozenset[str]) -> Floats:
    """The share of the wanted topics among the first candidates (questions x cuts)."""
    snapshot = current_snapshot(Home(home), "s0")
    assert snapshot is not None
    with SnapshotReader(snapshot) as reader:
        encoder = QuestionEncoder(reader.snapshot.manifest.embedding_model, cached=1)
        placed = reader.all_evidence().select("observation_id", "topic_id").collect()
        topics = dict(zip(placed["observation_id"], placed["topic_id"], strict=True))
        found = []
        for each in wanted:
            question = Question(each.text, (each.scope,), stages=stages, top_k=CUTS[-1], evidence_k=1)
            ids = [entry["topic_id"] for entry in answer([reader], encoder, None, question)["candidates"]]
            found.append(shares(ids, {topics[one] for one in each.observations if topics.get(one)}))
    return np.array([row for row in found if row])


def shares(ranked: Sequence[str], wanted: set[str]) -> list[float]:
    """The share of the wanted ids among the first of a ranking, for each cut; nothing without wanted ids."""
    return [len(wanted & set(ranked[:cut])) / len(wanted) for cut in CUTS] if wanted else []


def lines(name: str, home: Path, wanted: Sequence[Wanted], seed: int) -> list[str]:
    """The rows of one store, in per cent; the difference has 95 per cent bootstrap intervals."""
    without, given = (100 * recalls(home, wanted, stages) for stages in (STAGES - {"structural"}, STAGES))
    rows = [(f"{name}, {len(given)} questions", without), ("+ structural", given)]
    means = [f"| {label} | {' | '.join(f'{mean:.1f}' for mean in found.mean(axis=0))} |" for label, found in rows]
    gains = [bootstrapped(column, seed) for column in (given - without).T]
    cells = " | ".join(f"{gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})" for gain in gains)
    return [*means, f"| difference | {cells} |"]


def main(given: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Measure what following edges adds.")
    parser.add_argument("data", type=Path, nargs="*", help="folders with turns.jsonl and questions.jsonl")
    parser.add_argument("--topics", type=int, default=1000, help="of the made store")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(given)
    print(f"| wanted topics among the first | {' | '.join(map(str, CUTS))} |\n{'|---' * (len(CUTS) + 1)}|")
    with tempfile.TemporaryDirectory() as scratch:
        own = Path(scratch) / "made"
        own.mkdir()
        stores = [("made store", own, made(own, args.topics, args.seed))]
        stores += [(folder.name, folder, marked(folder)) for folder in args.data]
        for name, folder, wanted in stores:
            home = Path(scratch) / f"home-{name}"
            home.mkdir()
            prepared(folder, home)
            print("\n".join(lines(name, home, wanted, args.seed)), flush=True)


if __name__ == "__main__":
    main()
