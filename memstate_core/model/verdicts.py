"""Verdicts on pairs of topics: are the two one? Recorded in the ledger and given on the command line."""

from __future__ import annotations

SAME, DIFFERENT, SKIP = VERDICTS = ("same", "different", "skip")
