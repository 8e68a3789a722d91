"""What answers in review are worth: quality of merging by the number of pairs that a reviewer has judged.

The reviewer answers from the labels: `same` if any record of one topic is the same thing as any of the other. Nights
and corrections are real, on a store of their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
from labelled import Labelled
from real_stores import day, groups, import_lines, lines_of, over_directories, print_table, record_topics
from scoring import Result

from memstate_core.model.verdicts import DIFFERENT, SAME
from memstate_core.night.corrections import correct
from memstate_core.revise.verdicts import open_pairs, verdict_decisions
from memstate_core.run.served_state import read_served
from memstate_core.run.store import Store, open_store
from memstate_pipeline.run import maintain


def taught(directory: Path, labelled: Labelled, answers: int, step: int) -> Iterator[tuple[int, Result]]:
    """The number of answers given, and the merged pairs after the night that follows them.

    Args:
        directory: has `observations.jsonl` or `.jsonl.gz`.
        labelled: the same records with their labels.
        answers: how many pairs are judged at most; fewer if no more are suggested.
        step: how many are judged between two nights.
    """
    given = night = 0
    with tempfile.TemporaryDirectory() as home:
        store = open_store(Path(home), {})
        import_lines(store, lines_of(directory), night)
        while True:
            maintain(store, day(night))
            yield given, labelled.labels.judged_groups(groups(store, labelled))
            judged = _judge(store, labelled, min(step, answers - given), night)
            if not judged:
                return
            given, night = given + judged, night + 1


def _judge(store: Store, labelled: Labelled, limit: int, night: int) -> int:
    """Judges the first suggested pairs of each shard by the labels; how many there were."""
    judged = 0
    for shard, served in read_served(store).items():
        asked = _verdicts(open_pairs(served).select("a", "b").head(limit - judged), record_topics(store), labelled)
        if asked.height:
            decided = verdict_decisions(served, asked.rows())
            correct(store, shard, f"review-{night}-{shard}", day(night), decided, "judged by the labels")
            judged += asked.height
    return judged


def _verdicts(asked: pl.DataFrame, topics: pl.DataFrame, labelled: Labelled) -> pl.DataFrame:
    """Columns a, b, verdict."""
    records = topics.join(labelled.corpus.topics.select("id").with_row_index("record"), on="id")
    sides = [
        records.select(pl.col("topic_id").alias(end), pl.col("record").cast(pl.Int64).alias(f"of_{end}"))
        for end in "ab"
    ]
    both = asked.join(sides[0], on="a").join(sides[1], on="b")
    true = labelled.labels.true(both["of_a"].to_numpy(), both["of_b"].to_numpy())
    same = both.with_columns(true=pl.Series(true)).group_by("a", "b").agg(pl.col("true").any())
    verdict = pl.when("true").then(pl.lit(SAME)).otherwise(pl.lit(DIFFERENT))
    return asked.join(same, on=["a", "b"], maintain_order="left").select("a", "b", verdict=verdict)


def main(given: Sequence[str] | None = None) -> None:
    """Prints a table with a line for each batch of answers."""
    parser = over_directories("Judge suggested pairs by labels, with a night after each batch.")
    parser.add_argument("--answers", type=int, default=100, help="pairs to judge at most")
    parser.add_argument("--step", type=int, default=20, help="pairs to judge between two nights")
    args = parser.parse_args(given)
    print_table(args.directories, "answers", lambda *labelled: taught(*labelled, args.answers, args.step))


if __name__ == "__main__":
    main()
