"""The output of runs in this process, which stays where the process was started.

To show output in the UI as well, Dagster starts four processes for each run, two of them Python: a tenth of the CPU
time of a small night. Output of a run that the command line begins is on the terminal or in the mail of cron, so only
runs that Dagster launches are captured. This module is the one that names the class that captures nothing, which
Dagster does not export.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager


@contextmanager
def output_not_captured(instance: dg.DagsterInstance) -> Iterator[None]:
    """Within it, the instance leaves the standard output and error of runs in this process as they are."""
    logs, none = instance.compute_log_manager, NoOpComputeLogManager()
    vars(logs)["capture_logs"] = none.capture_logs
    try:
        yield
    finally:
        del vars(logs)["capture_logs"]
