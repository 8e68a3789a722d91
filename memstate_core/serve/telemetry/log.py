"""What a server writes about itself, on stderr: one JSON object a line. Never bodies, questions, headers or keys."""

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
"""A shorter key of the environment is not looked for: it would be found in words that are none."""
_LOGGERS = ("memstate", "uvicorn")
_RESERVED = {"mcp": logging.ERROR}
"""Loggers of others that would tell what callers said, below this level."""


class JsonLines(logging.Formatter):
    """A record as one JSON object; what was given as `extra={"facts": {...}}` stands beside it.

    A caller may have put a key where none belongs, as in a path; it is cut out wherever it stands.

    Args:
        secret: the key that the environment sets; None without one.
    """

    def __init__(self, secret: str | None = None) -> None:
        super().__init__()
        self._secret = None if secret is None else msgspec.json.encode(secret).decode()[1:-1]

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        said: dict[str, Any] = {
            "time": iso(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        } | getattr(record, "facts", {})
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        line = _KEY.sub(r"\1…", msgspec.json.encode(said, enc_hook=str).decode())
        if self._secret is not None and len(self._secret) >= _SHORTEST:
            line = line.replace(self._secret, "…")
        return line


def log_as_json(secret: str | None = None) -> None:
    """Sends the log to stderr as JSON lines: the server's own, and what is amiss elsewhere in the process.

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
