"""The server's log on stderr as JSON lines. It never contains bodies, questions, headers or keys."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from memstate_core.model.text import iso

ACCESS = "memstate.access"
_KEY = re.compile(r"(ms_[0-9a-f]{12}_)[0-9a-f]+")
_SHORTEST = 6
"""Shorter environment keys are not redacted: they would match inside ordinary words."""
_LOGGERS = ("memstate", "uvicorn")
_RESERVED = {"mcp": logging.ERROR}
"""Loggers of libraries that would log callers' content below this level."""


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object, with the items of `extra={"facts": {...}}` as further keys.

    Callers may put a key where none belongs, such as in a path, so keys are redacted everywhere.

    Args:
        secret: the environment's key; None without one.
    """

    def __init__(self, secret: str | None = None) -> None:
        super().__init__()
        self._secret = None if secret is None else msgspec.json.encode(secret).decode()[1:-1]

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        entry: dict[str, Any] = {
            "time": iso(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        } | getattr(record, "facts", {})
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        line = _KEY.sub(r"\1…", msgspec.json.encode(entry, enc_hook=str).decode())
        if self._secret is not None and len(self._secret) >= _SHORTEST:
            line = line.replace(self._secret, "…")
        return line


def log_as_json(secret: str | None = None) -> None:
    """Sends the log to stderr as JSON lines: the server's own from INFO, other loggers' warnings and errors.

    `secret` is as for `JsonLines`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(secret))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.getLogger().handlers = [handler]
    for name, level in _RESERVED.items():
        logging.getLogger(name).setLevel(level)
