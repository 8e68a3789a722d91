"""The plot of `memstate simulate`: topics under two policies night by night, and the accesses that each misses.

matplotlib is imported inside the functions because most commands never draw. Same data, same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from memstate_core.model.text import parse_moment

SUFFIXES = (".svg", ".html")
SIDES = {"present": {"linestyle": (0, (4, 2)), "alpha": 0.75}, "other": {"linestyle": "-", "alpha": 1.0}}
COLOURS = {"active": "#3f72b5", "archived": "#8c8c86"}
BARS = {"present": "#d8a29c", "other": "#b5483f"}
STYLE: dict[Any, Any] = {
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "svg.fonttype": "none",
    "date.converter": "concise",
    "svg.hashsalt": "simulation",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def write_plot(document: Mapping[str, Any], path: Path) -> None:
    """Writes the plot of a simulation.

    Args:
        document: the result of `memstate_core.forget.simulation.policy_comparison.compare_policies`.
        path: the file, .svg or .html; missing folders are created.
    """
    svg = _drawn(document)
    page = "<!doctype html>\n<meta charset='utf-8'>\n<title>memstate simulate</title>\n" + svg[svg.index("<svg") :]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page if path.suffix == ".html" else svg, encoding="utf-8")


def _drawn(document: Mapping[str, Any]) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    out = io.StringIO()
    with rc_context(STYLE):
        figure = Figure(figsize=(9, 5.5), layout="constrained")
        figure.suptitle(f"{document['mode']}, {document['from'][:10]} to {document['to'][:10]}")
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1.4))
        _lines(upper, document)
        _bars(lower, document)
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return out.getvalue()


def _lines(axes: Any, document: Mapping[str, Any]) -> None:
    for side, style in SIDES.items():
        nights = document[side]["nights"]
        days = [parse_moment(night["at"]) for night in nights]
        for name, colour in COLOURS.items():
            values = [night[name] for night in nights]
            axes.plot(days, values, color=colour, label=f"{name}, {side} policy", **style)
    axes.set_ylabel("topics")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)


def _bars(axes: Any, document: Mapping[str, Any]) -> None:
    for shift, side in ((timedelta(days=-0.2), "present"), (timedelta(days=0.2), "other")):
        nights = document[side]["nights"]
        days = [parse_moment(night["at"]) + shift for night in nights]
        values = [night["missed"] for night in nights]
        axes.bar(days, values, width=0.4, color=BARS[side], label=f"{side} policy")
    axes.yaxis.get_major_locator().set_params(integer=True, nbins=4)
    axes.set_ylabel("missed accesses")
    axes.set_ylim(0, max(1, axes.get_ylim()[1]))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)
