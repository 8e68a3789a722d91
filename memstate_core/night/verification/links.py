"""Whether links have a form that could be followed. None is followed: a night opens no connection for a memory."""

from __future__ import annotations

from urllib.parse import urlsplit

import polars as pl

from memstate_core.night.verification.finding import UNKNOWN, WARNING, found

LINK = "link"
"""The name of the check."""

_SCHEMES = ("http", "https")


def check_links(evidence: pl.LazyFrame) -> pl.DataFrame:
    """Findings about the resources whose address is a link (columns FINDINGS).

    Args:
        evidence: columns observation_id, scope, topic_kind, payload_json.
    """
    uri = pl.col("payload_json").str.json_path_match("$.memory.uri")
    rows = evidence.filter(pl.col("topic_kind") == "memory:resource").with_columns(uri=uri).collect()
    linked = rows.filter(pl.col("uri").str.contains(r"^[A-Za-z][A-Za-z0-9+.-]*:").fill_null(False))
    linked = linked.filter(~pl.col("uri").str.starts_with("file:"))
    return found(linked, LINK, map(_judged, linked["uri"]))


def _judged(uri: str) -> tuple[str, str]:
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        return WARNING, f"{uri} is no link: {error}"
    if parts.scheme.lower() not in _SCHEMES:
        return UNKNOWN, f"{uri} has a scheme that is not looked at"
    if not host or any(each.isspace() for each in uri) or port == 0:
        return WARNING, f"{uri} names no host that could answer"
    return UNKNOWN, f"{uri} was not asked, since links are not followed"
