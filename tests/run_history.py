"""Dagster's run history in tests."""

from __future__ import annotations


def hurried() -> None:
    """Turns off synchronous writes of SQLite, which only Dagster's history uses: they protect against power loss only.

    Writes of a killed process stay, and memstate's own files are written as usual.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
