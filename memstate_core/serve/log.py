"""What a server writes about itself, on stderr: one JSON object a line. Never bodies, questions, headers or keys."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

from memstate_core.model.text import iso

ACCESS = "memstate.access"
_LOGGERS = ("memstate", "uvicorn")


class JsonLines(logging.Formatter):
    """A record as one JSON object; what was given as `extra={"facts": {...}}` stands beside it."""

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
        return msgspec.json.encode(said, enc_hook=str).decode()


def log_as_json() -> None:
    """Sends the server's own loggers to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
