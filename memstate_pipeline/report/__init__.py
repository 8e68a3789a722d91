"""The page that every maintenance run leaves: what changed, why, and how the store looks now.

Rendering lives here; gathering what to render belongs to the assets. A page is a pure function of its
`ReportData`: no clock, no network, no store, so the same run replayed leaves the same bytes.
"""

from memstate_pipeline.report.page import ReportData, latest_report, render_report, write_report

__all__ = ["ReportData", "latest_report", "render_report", "write_report"]
