"""Whether the observations exist that facts, relations and other forms name as their sources."""

from __future__ import annotations

import polars as pl

from memstate_core.model.forms.registry import FORMS
from memstate_core.night.verification.finding import FAILED, FINDINGS, PASSED

CITATIONS = "citations"
"""The name of the check."""

MISSING = "cited and not in the ledger: "
"""How the message of a failure begins."""

_FORMS = [form.form() for form in FORMS if any(key.name == "sources" for key in form.keys())]  # noqa: SIM118
"""The forms that name sources, by which a list of texts is certain."""

_SHOWN = 10


def check_citations(evidence: pl.LazyFrame) -> pl.DataFrame:
    """Findings about the records that name sources (columns FINDINGS).

    Args:
        evidence: columns observation_id, scope, payload_json.
    """
    some = pl.col("payload_json").str.contains('"sources":[', literal=True)
    typed = pl.col("payload_json").str.json_path_match("$.memory.type").is_in(_FORMS)
    rows = evidence.filter(some).filter(typed).select("observation_id", "scope", "payload_json").collect()
    lists = pl.col("payload_json").str.json_path_match("$.memory.sources")
    cited = rows.select("scope", "observation_id", _cited=lists).drop_nulls("_cited")
    if cited.is_empty():
        return pl.DataFrame(schema=FINDINGS)
    named = cited.with_columns(pl.col("_cited").str.json_decode(pl.List(pl.String)))
    each = named.explode("_cited").drop_nulls("_cited")
    have = evidence.select("scope", _cited="observation_id", _there=pl.lit(True)).unique()
    known = each.lazy().join(have, on=["scope", "_cited"], how="left", maintain_order="left").collect()
    missing = known.filter(pl.col("_there").is_null()).group_by("scope", "observation_id").agg("_cited")
    joined = named.join(missing, on=["scope", "observation_id"], how="left", suffix="_lost", maintain_order="left")
    lost, count = pl.col("_cited_lost"), pl.col("_cited").list.len()
    shown = lost.list.sort().list.head(_SHOWN).list.join(", ")
    return joined.select(
        "scope",
        target="observation:" + pl.col("observation_id"),
        check=pl.lit(CITATIONS),
        status=pl.when(lost.is_null()).then(pl.lit(PASSED)).otherwise(pl.lit(FAILED)),
        message=pl.when(lost.is_null())
        .then(pl.format("all {} cited observations are in the ledger", count))
        .otherwise(pl.lit(MISSING) + shown),
    ).unique(["scope", "target"], keep="first", maintain_order=True)
