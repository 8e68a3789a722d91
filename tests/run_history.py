"""Dagster's run history in tests."""

from __future__ import annotations


def hurried() -> None:
    """Lets SQLite, in which only Dagster keeps its history, not wait for the disk: that guards against a loss of power.

    What a process wrote before it was killed stays, and memstate's own files are written as ever.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
