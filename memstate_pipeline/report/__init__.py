"""The page of a maintenance run: what changed, why, and the present state of the shard.

`collect` gathers the data; everything else is a pure function of it, without clock, network or store, so that a
replayed run gives the same bytes.
"""

from memstate_pipeline.report.latest import latest_report
from memstate_pipeline.report.page import ReportData, render_report, write_report

__all__ = ["ReportData", "latest_report", "render_report", "write_report"]
