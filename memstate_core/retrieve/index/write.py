"""The files that a query reads beside the graph, written when a snapshot is made.

| file | rows |
|---|---|
| `topics.parquet`, `topic_vectors.npy` | active topics with a vector, by scope and id |
| `evidence.parquet`, `windows.npy`, `window_lengths.npy` | evidence by scope, time and id |
| `evidence_vectors.npy` | numbered by `vector_row` of `evidence.parquet` |
| `lexical/evidence/`, `lexical/topics/` | BM25 postings of both (`memstate_core.retrieve.index.bm25`) |
| `scopes.parquet` | where each scope's rows lie in all of the above |
| `notes.parquet` | what evidence notes about workspace, branch, commit and file (`.notes`, written when published) |
| `facts/` | current facts (`memstate_core.retrieve.index.facts_files`, written by `write_facts`) |

Invariants: a scope's rows lie together in every file, so a query reads those of its scopes and no others;
the same input gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.embed.matrix import matrix
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.frames import conform
from memstate_core.model.graph_tables import TOPICS
from memstate_core.model.quantity import quantity
from memstate_core.model.step_frames import EVIDENCE_INDEX
from memstate_core.retrieve.index.bm25 import POSTING_FILES, write_runs
from memstate_core.retrieve.index.facts_files import fact_problems
from memstate_core.retrieve.index.kept_scopes import SCOPES_FILE, EarlierIndex, joined_rows, joined_terms
from memstate_core.retrieve.index.layout import SERVED_STATE, place_scopes, placed_scopes, scope_layout, write_rows
from memstate_core.retrieve.index.notes import NOTES_FILE
from memstate_core.retrieve.index.term_counts import evidence_terms, topic_terms
from memstate_core.retrieve.index.windows import MISSING, session_windows, window_lengths, window_members
from memstate_core.state.files import link_or_copy
from memstate_core.state.graph import TOPIC, VECTOR
from memstate_core.state.kept_tables import Rows

TOPIC_COLUMNS = (
    "id", "scope", "title", "summary", "topic_kind", "salience", "failed_salience", "state", "created_at"
)  # fmt: skip
EVIDENCE_FILES = ("evidence.parquet", "windows.npy", "window_lengths.npy", "evidence_vectors.npy")
EVIDENCE_TERMS, TOPIC_TERMS = "lexical/evidence", "lexical/topics"
Layouts = dict[str, pl.DataFrame]
"""Where scopes lie in files (`scope_layout`), by the names that `scopes.parquet` has for them."""


def write_index(
    folder: Path, *, topics: pl.DataFrame, vectors: pl.DataFrame, evidence: pl.DataFrame, evidence_vectors: Vectors
) -> None:
    """Writes all index files of a snapshot.

    Args:
        folder: the snapshot's folder, without index files.
        topics: topics in all states (columns TOPICS).
        vectors: their vectors (columns VECTORS, in any dimension).
        evidence: columns EVIDENCE_INDEX, sorted by scope, observed_at, evidence_id; `topic_id` names the
            topic that holds the evidence now, merges followed.
        evidence_vectors: unit vectors, float32, n x d; row numbers as in `evidence["vector_row"]`.
    """
    write_topic_index(folder, topics, vectors, write_evidence_index(folder, evidence, evidence_vectors))


def write_evidence_index(
    folder: Path, evidence: pl.DataFrame, evidence_vectors: Vectors, earlier: EarlierIndex | None = None
) -> Layouts:
    """Writes the index files of evidence; returns where its scopes lie in them.

    Args:
        folder: as for `write_index`.
        evidence: as for `write_index`.
        evidence_vectors: as for `write_index`.
        earlier: an earlier index, to take over what it has of scopes with the same evidence.
    """
    evidence = conform(evidence, EVIDENCE_INDEX)
    write_rows(evidence, folder / "evidence.parquet")
    np.save(folder / "evidence_vectors.npy", np.ascontiguousarray(evidence_vectors, dtype=np.float32))
    layout = scope_layout(evidence)
    same = set[str]() if earlier is None else earlier.same(evidence.select("scope", "evidence_id"), "evidence.parquet")
    part = evidence.filter(~pl.col("scope").is_in(list(same)))
    own = scope_layout(part)
    starts = part.select("scope").join(own, on="scope", maintain_order="left")["first"].to_numpy()
    windows = session_windows(part, starts)
    vector_rows = part["vector_row"].fill_null(MISSING).to_numpy()
    lengths = window_lengths(windows, starts, vector_rows, evidence_vectors)
    for file, rows in (("windows.npy", windows), ("window_lengths.npy", lengths)):
        np.save(folder / file, joined_rows(earlier, layout, same, file, rows, part))
    made = evidence_terms(part, own, window_members(windows, starts))
    terms = joined_terms(earlier, layout["scope"], same, (EVIDENCE_TERMS, "evidence_term"), made)
    return {"evidence": layout, "evidence_term": write_runs(folder / EVIDENCE_TERMS, terms)}


def link_evidence_index(folder: Path, base: Path) -> Layouts:
    """Shares the index files of evidence with another snapshot of the same evidence, topics and model."""
    (folder / EVIDENCE_TERMS).mkdir(parents=True)
    shared = [name for name in (NOTES_FILE,) if (base / name).exists()]
    for name in (*EVIDENCE_FILES, *shared, *(f"{EVIDENCE_TERMS}/{file}" for file in POSTING_FILES)):
        link_or_copy(base / name, folder / name)
    places = pl.read_parquet(base / SCOPES_FILE, glob=False)
    return {name: placed_scopes(places, name) for name in ("evidence", "evidence_term")}


def write_topic_index(
    folder: Path,
    topics: pl.DataFrame,
    vectors: pl.DataFrame,
    of_evidence: Layouts,
    earlier: EarlierIndex | None = None,
) -> None:
    """Writes the index files of topics, and where scopes lie in all files.

    Args:
        folder: as for `write_index`.
        topics: as for `write_index`.
        vectors: as for `write_index`.
        of_evidence: where scopes lie in the index files of evidence.
        earlier: an earlier index, to take over what it has of scopes with the same topics.
    """
    active = served_topics(topics, vectors)
    write_rows(active.select(TOPIC_COLUMNS), folder / "topics.parquet")
    np.save(folder / "topic_vectors.npy", matrix(active["embedding"]))
    layout = scope_layout(active)
    documents = active.select("scope", "id", "title", "summary")
    same = set[str]() if earlier is None else earlier.same(documents, "topics.parquet")
    part = active.filter(~pl.col("scope").is_in(list(same)))
    made = topic_terms(part, scope_layout(part))
    terms = write_runs(
        folder / TOPIC_TERMS, joined_terms(earlier, layout["scope"], same, (TOPIC_TERMS, "topic_term"), made)
    )
    write_rows(place_scopes({**of_evidence, "topic": layout, "topic_term": terms}), folder / SCOPES_FILE)


def served_topics(topics: pl.DataFrame, vectors: pl.DataFrame) -> pl.DataFrame:
    """Topics that a default query may return, with their vectors, by scope and id; verification records are none."""
    active = conform(topics, TOPICS).filter(pl.col("state") == SERVED_STATE)
    active = active.filter(pl.col("topic_kind").ne_missing(VERIFICATION))
    return active.join(vectors.select("id", "embedding"), on="id").sort("scope", "id")


def index_problems(folder: Path, graph: Rows) -> list[str]:
    """Differences between the index files and the graph; empty if there are none."""
    topics = graph.read(TOPIC)
    expected = served_topics(topics, graph.read(VECTOR))
    files = _topic_problems(folder, expected) + _evidence_problems(folder, topics["id"])
    places = [] if files else _place_problems(folder, expected)  # of other rows they are other ones
    return files + places + fact_problems(folder, graph)


def _topic_problems(folder: Path, expected: pl.DataFrame) -> list[str]:
    found = pl.read_parquet(folder / "topics.parquet", glob=False)
    ids = found["id"]
    vectors = np.load(folder / "topic_vectors.npy", mmap_mode="r")
    if not ids.equals(expected["id"]):
        counts = f"topics.parquet lists {quantity(len(ids), 'topics')}, the graph serves {expected.height}"
        return [f"{counts}; {_difference(ids, expected['id'])}"]
    if odd := differing_columns(found, expected.select(TOPIC_COLUMNS), "id"):
        return [f"topics.parquet differs from the graph in {odd}"]
    if len(vectors) != len(ids):
        return [f"topic_vectors.npy has {quantity(len(vectors), 'rows')}, topics.parquet has {len(ids)}"]
    unequal = np.flatnonzero((vectors != matrix(expected["embedding"])).any(axis=1))
    if len(unequal):
        rows = quantity(len(unequal), "rows")
        return [f"topic_vectors.npy differs from the graph in {rows}, first {ids[int(unequal[0])]}"]
    return []


def differing_columns(found: pl.DataFrame, expected: pl.DataFrame, key: str) -> str:
    """The columns in which two frames of the same keys in the same order differ, and the first such key; else empty.

    Columns that one of them lacks do not count, since earlier versions wrote fewer.
    """
    shared = [name for name in expected.columns if name in found.columns]
    differs = [pl.Series(name, found[name].ne_missing(expected[name])) for name in shared]
    odd = [each.name for each in differs if each.any()]
    if not odd:
        return ""
    rows = pl.DataFrame(differs).select(pl.any_horizontal(pl.all()).arg_true()).to_series()
    return f"{', '.join(odd)} of {quantity(len(rows), 'rows')}, first {expected[key][int(rows[0])]}"


def _place_problems(folder: Path, topics: pl.DataFrame) -> list[str]:
    """Whether scopes lie where their rows do; where those of lexical terms lie, only a rebuilt index shows."""
    evidence = pl.read_parquet(folder / "evidence.parquet", columns=["scope"], glob=False)
    layouts = {"evidence": scope_layout(evidence), "topic": scope_layout(topics)}
    places = pl.read_parquet(folder / SCOPES_FILE, glob=False)
    return [
        f"{SCOPES_FILE} differs from the rows of {name}"
        for name, layout in layouts.items()
        if not placed_scopes(places, name).equals(layout)
    ]


def _difference(found: pl.Series, expected: pl.Series) -> str:
    odd = sorted(set(found) ^ set(expected))
    return f"only one of them has {', '.join(odd[:3])}" if odd else "the order differs"


def _evidence_problems(folder: Path, known: pl.Series) -> list[str]:
    evidence = pl.read_parquet(folder / "evidence.parquet", glob=False)
    lengths = {name: _rows_of(folder / f"{name}.npy") for name in ("windows", "window_lengths", "evidence_vectors")}
    problems = [
        f"{name}.npy has {quantity(lengths[name], 'rows')}, evidence.parquet has {evidence.height}"
        for name in ("windows", "window_lengths")
        if lengths[name] != evidence.height
    ]
    beyond = evidence.filter(~pl.col("vector_row").is_between(0, lengths["evidence_vectors"] - 1))
    if beyond.height:
        problems.append(
            f"evidence_vectors.npy lacks {quantity(beyond.height, 'rows')}, first that of {beyond['evidence_id'][0]}"
        )
    order = ["scope", "observed_at", "evidence_id"]
    if not evidence.select(order).equals(evidence.select(order).sort(order)):
        problems.append(f"evidence.parquet is not sorted by {', '.join(order)}")
    unknown = evidence.filter(~pl.col("topic_id").is_in(known.implode()))["topic_id"].unique().sort()
    if len(unknown):
        problems.append(
            f"evidence.parquet names {quantity(len(unknown), 'topics that the graph lacks')}, first {unknown[0]}"
        )
    return problems


def _rows_of(path: Path) -> int:
    return len(np.load(path, mmap_mode="r"))
