"""Evidence as a snapshot serves it: its text, its topic and its vector."""

from __future__ import annotations

import numpy as np
import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.embed.vector_cache import embed
from memstate_core.model.evidence import names_a_topic, spoken
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.frames import conform, empty, project
from memstate_core.model.step_frames import EVIDENCE_INDEX, EVIDENCE_TOPIC
from memstate_core.retrieve.index.kept_scopes import EarlierIndex
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_evidence

_COLUMNS = [
    "evidence_id", "observation_id", "scope", "kind", "actor", "session_id", "turn", "observed_at", "text",
    "topic_id", "topic_key", "topic_kind", "title", "summary", "fields",
]  # fmt: skip
DETAILS = ("tool", "status", "path")
_KNOWN = {name: dtype for name, dtype in EVIDENCE_INDEX.items() if name != "topic_id"}
"""What of the index follows from evidence alone."""


def evidence_index(store: Store, run: Run, earlier: EarlierIndex | None = None) -> tuple[pl.DataFrame, Vectors]:
    """Evidence in the order of the index (columns EVIDENCE_INDEX), and the vectors of its turns.

    Structured evidence is rendered as text for lexical search; only turns have vectors, which placement has
    put into the cache.

    Args:
        store: the store.
        run: the run in progress.
        earlier: an earlier index, to take over what it has of the same evidence, which never changes.
    """
    rows, turns = _rows(store, run, earlier)
    return rows, _vectors(store, turns, earlier)


def evidence_rows(store: Store, run: Run) -> tuple[pl.DataFrame, pl.Series]:
    """Evidence in the order of the index as the ledger has it, and the texts of its turns in the order of vectors."""
    rows, turns = _rows(store, run, None)
    return rows, turns["_said"]


def _rows(store: Store, run: Run, earlier: EarlierIndex | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evidence, and the texts of turns (`_said`) with their rows in an earlier index (`_was`)."""
    there = shard_evidence(store.ledger, run, ["evidence_id"])
    known = empty(_KNOWN) if earlier is None else conform(earlier.rows("evidence.parquet", list(_KNOWN)), _KNOWN)
    known = known.join(there, on="evidence_id", how="semi")
    new = None if earlier is None else there.join(known, on="evidence_id", how="anti")["evidence_id"]
    fresh = _rendered(store, run, new)
    every = pl.concat([known.with_columns(_said=pl.lit(None, pl.String)), fresh]).sort(
        "scope", "observed_at", "evidence_id"
    )
    turn = pl.col("vector_row").is_not_null()
    numbered = every.with_columns(_was="vector_row", vector_row=pl.when(turn).then(turn.cum_sum().cast(pl.Int64) - 1))
    links = run.table("links", EVIDENCE_TOPIC).drop("scope")
    joined = numbered.join(links, on="evidence_id", how="left", maintain_order="left")
    turns = numbered.filter(pl.col("vector_row").is_not_null()).select("_was", "_said")
    return project(joined, EVIDENCE_INDEX), turns


def _rendered(store: Store, run: Run, among: pl.Series | None) -> pl.DataFrame:
    """Evidence (columns _KNOWN and `_said`, the text of a turn's vector); `vector_row` is -1 where it needs one."""
    evidence = shard_evidence(store.ledger, run, _COLUMNS, among)
    named = names_a_topic()
    said = pl.when(~named).then(spoken())
    evidence = evidence.with_columns(
        _said=said,
        vector_row=pl.when(~named).then(pl.lit(-1, pl.Int64)),
        text=pl.when(is_record()).then(pl.lit("")).when(named).then(rendered()).otherwise("text"),
    )
    evidence = evidence.join(_details(store, run, among), on="evidence_id", how="left", maintain_order="left")
    return project(evidence, {**_KNOWN, "_said": pl.String})


def _vectors(store: Store, turns: pl.DataFrame, earlier: EarlierIndex | None) -> Vectors:
    """The vectors of turns, in order: those of an earlier index (row `_was`), and those of the texts `_said`."""
    new = (turns["_was"] < 0).to_numpy()
    fresh = embed(store.home.cache, store.encoder, turns.filter(pl.col("_was") < 0)["_said"].to_list()).vectors
    if earlier is None or new.all():
        return fresh
    held = earlier.array("evidence_vectors.npy")
    vectors = np.empty((len(new), held.shape[1]), dtype=np.float32)
    vectors[~new] = held[turns["_was"].to_numpy()[~new]]
    vectors[new] = fresh
    return vectors


def _details(store: Store, run: Run, among: pl.Series | None) -> pl.DataFrame:
    """The details of events by which queries find them (columns evidence_id, tool, status, path)."""
    rows = shard_evidence(store.ledger, run, ["evidence_id", "payload_json"], among)
    rows = rows.filter(pl.col("payload_json").str.contains('"details":{', literal=True).fill_null(False))
    return rows.select("evidence_id", **details())


def details() -> dict[str, pl.Expr]:
    """The details of events by which queries find them, by name, from the column payload_json; null without any."""
    return {name: pl.col("payload_json").str.json_path_match(f"$.details.{name}") for name in DETAILS}


def is_record() -> pl.Expr:
    """Whether evidence is a verification record, which no question is about."""
    return pl.col("topic_kind").eq_missing(pl.lit(VERIFICATION))


def rendered() -> pl.Expr:
    """Structured evidence as text: title, summary, fields as `name: value`, then the text, a line each.

    Where a value begins after the observation, the dates that the fields give stand beside them.
    """
    item, fields = pl.element().struct, pl.col("fields").list
    plain = pl.format("{}: {}", item.field("name"), item.field("value_json").str.replace_all(r'^"|"$', ""))
    dated = pl.coalesce(pl.format("{} (from {})", plain, item.field("valid_from").dt.strftime("%Y-%m-%d")), plain)
    announced = fields.eval(item.field("valid_from")).list.max() > pl.col("observed_at")
    values = pl.when(announced).then(fields.eval(dated)).otherwise(fields.eval(plain)).list.join("; ")
    lines = ["title", "summary", pl.when(fields.len() > 0).then(values), "text"]
    rendered = pl.concat_str(lines, separator="\n", ignore_nulls=True)
    return pl.when(rendered.str.len_chars() > 0).then(rendered).otherwise(pl.coalesce("topic_key", "topic_id"))
