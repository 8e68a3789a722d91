"""Evidence in other languages than English: the same chat and questions in four of them, by sentence encoder.

    python tests/benchmarks/languages.py [--e5 FOLDER]

The chats are those of `chats/` (`language_chats.py`). For each encoder they are imported and one night is run by the
real program, with the defaults otherwise; then every method of `retrieval.py` answers the questions of each language.
`--e5` names a folder that `unpack_e5.py` wrote: multilingual-e5-small. Nothing was fitted to these chats.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from language_chats import ASKED_AT, LANGUAGES, chat
from ranking import CUTS, bootstrapped
from retrieval import OURS, Methods, measured, prepared

from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.snapshots.question_encoder import QuestionEncoder
from memstate_core.state.current import current_snapshot
from memstate_core.state.home import Home

ALL = list(OURS)[-1]
BM25 = "BM25 alone"
SHOWN = (BM25, "encoder alone", "sum of standardised scores", "ours: words", ALL)
K = CUTS[:3]


def encoders(e5: Path | None) -> dict[str, str]:
    """The settings of each encoder, by the name in the tables."""
    found = {"all-MiniLM-L6-v2": ""}
    if e5 is not None:
        model = f"[embedding]\nmodel = {json.dumps(str(e5.resolve()))}\n"
        found["multilingual-e5-small, no prefixes"] = model
        found["multilingual-e5-small"] = model + 'query_prefix = "query: "\npassage_prefix = "passage: "\n'
    return found


def stored(home: Path, settings: str) -> None:
    """Imports all chats into a home and runs one night."""
    home.mkdir(parents=True)
    (home / "memstate.toml").write_text(settings)
    turns = [turn for language in LANGUAGES for turn in chat(language).turns]
    (home / "turns.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    prepared(home, home)


def answered(home: Path, name: str, shown: Sequence[str]) -> Iterator[dict[str, object]]:
    """One row for each language, method and question: its recall at each of K."""
    snapshot = current_snapshot(Home(home), "s0")
    assert snapshot is not None
    with SnapshotReader(snapshot) as reader:
        methods = Methods(reader, QuestionEncoder(snapshot.manifest.embedding_model, cached=1), ASKED_AT)
        for language in LANGUAGES:
            questions = chat(language).questions
            for method in shown:
                scores = measured(methods.rankers[method], questions).scores
                for question, row in zip(questions, scores, strict=True):
                    found = {f"@{k}": 100 * value for k, value in zip(K, row, strict=False)}
                    keys = {"method": method, "encoder": "" if method == BM25 else name}
                    yield keys | {"language": language, "category": question["category"]} | found


def by_language(rows: pl.DataFrame, seed: int) -> str:
    """Recall at each of K with its interval at 10, a line for each language, method and encoder."""
    heads = ["language", "method", "encoder", *(f"@{k}" for k in K), "@10, 95 per cent"]
    lines = [heads, ["---"] * len(heads)]
    for (language, method, encoder), found in rows.group_by("language", "method", "encoder", maintain_order=True):
        interval = bootstrapped(found["@10"].to_numpy().astype(np.float64), seed)
        means = [f"{found[f'@{k}'].mean():.1f}" for k in K]
        lines.append([str(language), str(method), str(encoder), *means, f"{interval.low:.1f} to {interval.high:.1f}"])
    return _table(lines)


def by_category(rows: pl.DataFrame) -> str:
    """Recall at 10 of ours, a line for each language and encoder, a column for each category of questions."""
    ours = rows.filter(pl.col("method") == ALL)
    wide = ours.group_by("language", "encoder", "category", maintain_order=True).agg(pl.col("@10").mean())
    wide = wide.pivot("category", index=["language", "encoder"], values="@10", maintain_order=True)
    rounded = wide.with_columns(pl.selectors.float().round(1).cast(pl.String))
    return _table([wide.columns, ["---"] * wide.width, *map(list, rounded.rows())])


def _table(lines: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main(given: Sequence[str] | None = None) -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description="Measure what is found in other languages than English.")
    parser.add_argument("--e5", type=Path, metavar="FOLDER", help="multilingual-e5-small, as unpack_e5.py writes it")
    parser.add_argument("--seed", type=int, default=7, help="of the bootstrap")
    args = parser.parse_args(given)
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, settings) in enumerate(encoders(args.e5).items()):
            home = Path(scratch) / str(number)
            stored(home, settings)
            found += answered(home, name, SHOWN[1:] if number else SHOWN)
    ranks = {key: at for at, key in enumerate((*LANGUAGES, *SHOWN))}
    rows = pl.DataFrame(found).sort(pl.col("language", "method").replace_strict(ranks), maintain_order=True)
    print(by_language(rows, args.seed), by_category(rows), sep="\n\n")


if __name__ == "__main__":
    main()
