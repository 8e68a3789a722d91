"""Evidence as a snapshot serves it: its text, its topic and its vector."""

from __future__ import annotations

import polars as pl

from memstate_core.embed.encoder import Vectors
from memstate_core.embed.vector_cache import embed
from memstate_core.model.evidence import names_a_topic, spoken
from memstate_core.model.forms.verification import VERIFICATION
from memstate_core.model.frames import project
from memstate_core.model.step_frames import EVIDENCE_INDEX, EVIDENCE_TOPIC
from memstate_core.run.run import Run
from memstate_core.run.store import Store
from memstate_core.run.view import shard_evidence

_COLUMNS = [
    "evidence_id", "observation_id", "scope", "kind", "actor", "session_id", "turn", "observed_at", "text",
    "topic_id", "topic_key", "topic_kind", "title", "summary", "fields",
]  # fmt: skip
DETAILS = ("tool", "status", "path")


def evidence_index(store: Store, run: Run) -> tuple[pl.DataFrame, Vectors]:
    """Evidence in the order of the index (columns EVIDENCE_INDEX), and the vectors of its turns.

    Structured evidence is rendered as text for lexical search; only turns have vectors, which placement has
    put into the cache.
    """
    evidence_topic = run.table("links", EVIDENCE_TOPIC).drop("scope")
    evidence = shard_evidence(store.ledger, run, _COLUMNS).sort("scope", "observed_at", "evidence_id")
    named = names_a_topic()
    evidence = evidence.with_columns(
        _turn=~named,
        _said=spoken(),
        text=pl.when(is_record()).then(pl.lit("")).when(named).then(rendered()).otherwise("text"),
    )
    evidence = evidence.join(_details(store, run), on="evidence_id", how="left", maintain_order="left")
    numbered = evidence.with_columns(vector_row=pl.when("_turn").then(pl.col("_turn").cum_sum().cast(pl.Int64) - 1))
    joined = numbered.drop("topic_id").join(evidence_topic, on="evidence_id", how="left", maintain_order="left")
    said = numbered.filter("_turn")["_said"].to_list()
    return project(joined, EVIDENCE_INDEX), embed(store.home.cache, store.encoder, said).vectors


def _details(store: Store, run: Run) -> pl.DataFrame:
    """The details of events by which queries find them (columns evidence_id, tool, status, path)."""
    rows = shard_evidence(store.ledger, run, ["evidence_id", "payload_json"])
    rows = rows.filter(pl.col("payload_json").str.contains('"details":{', literal=True).fill_null(False))
    return rows.select("evidence_id", **details())


def details() -> dict[str, pl.Expr]:
    """The details of events by which queries find them, by name, from the column payload_json; null without any."""
    return {name: pl.col("payload_json").str.json_path_match(f"$.details.{name}") for name in DETAILS}


def is_record() -> pl.Expr:
    """Whether evidence is a verification record, which no question is about."""
    return pl.col("topic_kind").eq_missing(pl.lit(VERIFICATION))


def rendered() -> pl.Expr:
    """Structured evidence as text: title, summary, fields as `name: value`, then the text, a line each."""
    item = pl.element().struct
    value = item.field("value_json").str.replace_all(r'^"|"$', "")
    values = pl.col("fields").list.eval(pl.format("{}: {}", item.field("name"), value)).list.join("; ")
    lines = ["title", "summary", pl.when(pl.col("fields").list.len() > 0).then(values), "text"]
    rendered = pl.concat_str(lines, separator="\n", ignore_nulls=True)
    return pl.when(rendered.str.len_chars() > 0).then(rendered).otherwise(pl.coalesce("topic_key", "topic_id"))
