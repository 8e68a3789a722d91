"""Plots of the report, as SVG fragments for the page.

Colours are placeholders that are replaced by CSS variables with a fallback, so that one drawing is readable in light
and in dark mode. The same data gives the same bytes: ids are salted with the plot's name, which also keeps the ids of
two plots on a page apart, and no date is written.

matplotlib is imported in the functions because most commands never draw. Its object interface (`Figure`) is used
because pyplot keeps every figure in memory.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOWEST, HIGHEST = 0.001, 10.0
"""Ends of the salience axis; fixed, so that pages of two nights can be compared."""

BINS_PER_DECADE = 8
BAR = 0.88
"""The share of a bin's width that its bar takes."""

WIDTH, HEIGHT = 420, 280
LABEL, CHARACTER = 32, 7
"""Width of an axis label with its distances, and of a digit."""
INK, FAINT = "#0a0b01", "#0a0b02"
SERIES = {
    "active": "#0a0b03",
    "detached": "#0a0b04",
    "archived": "#0a0b05",
    "merged": "#0a0b06",
    "evidence": "#0a0b07",
}
THRESHOLD = "#0a0b08"
DASHED: dict[str, Any] = {"linewidth": 1.4, "linestyle": (0, (4, 2))}
DOTTED: dict[str, Any] = {"linewidth": 1.8, "markersize": 3.5}
MOST_DOTS = 60
"""Maximum number of snapshots drawn with markers; more would touch and make the page heavy."""

IN_PAGE = {
    INK: "currentColor",
    FAINT: "var(--chart-faint, #8885)",
    SERIES["active"]: "var(--chart-active, #3f72b5)",
    SERIES["detached"]: "var(--chart-detached, #b8863b)",
    SERIES["archived"]: "var(--chart-archived, #9a9a94)",
    SERIES["merged"]: "var(--chart-merged, #8a63b0)",
    SERIES["evidence"]: "var(--chart-evidence, #2f8f7f)",
    THRESHOLD: "var(--chart-threshold, #b5483f)",
}
"""CSS colours by placeholder."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib; the page's own font replaces it
    "font.size": 11.5,
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid.axis": "y",
    "axes.grid": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "ytick.left": False,
    "legend.frameon": False,
    "legend.handlelength": 1.0,
}


def salience_histogram(salience: pl.DataFrame, threshold: float | None = None) -> str:
    """Histogram of salience, stacked by state, on a logarithmic axis.

    Salience decays exponentially, so topics without accesses move left at a constant pace. Values beyond an end of
    the axis are counted in the outermost bar.

    Args:
        salience: columns state and salience, one row per topic; merged topics are left out.
        threshold: the salience below which topics may be archived, drawn as a line.

    Returns:
        An SVG element, or an empty string if there is no topic to draw.
    """
    import numpy as np

    shown = salience.filter(pl.col("salience").is_finite() & (pl.col("state") != "merged"))
    if shown.is_empty():
        return ""
    states = [state for state in SERIES if state in shown["state"]]
    values = [shown.filter(state=state)["salience"].clip(LOWEST, HIGHEST).to_numpy() for state in states]
    edges = np.geomspace(LOWEST, HIGHEST, round(np.log10(HIGHEST / LOWEST)) * BINS_PER_DECADE + 1)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot(xscale="log", xlim=(LOWEST, HIGHEST), xlabel="salience", ylabel="topics")
        _stacked(axes, edges, dict(zip(states, values, strict=True)))
        axes.set_xticks([0.001, 0.01, 0.1, 1, 10], ["≤ 0.001", "0.01", "0.1", "1", "10"])
        axes.minorticks_off()
        _count_axis(axes)
        if threshold is not None and LOWEST <= threshold <= HIGHEST:
            axes.axvline(threshold, color=THRESHOLD, label="archive threshold", **DASHED)
        _legend(axes)

    return _svg("salience", f"Histogram of the salience of {shown.height:,} topics", draw)


def growth_lines(growth: pl.DataFrame) -> str:
    """Topics by state, and evidence, over the numbers of the kept snapshots.

    Args:
        growth: columns snapshot, active, archived, merged and evidence, one row per snapshot, oldest first.

    Returns:
        An SVG element, or an empty string if there is no snapshot to draw.
    """
    if growth.is_empty():
        return ""
    runs = growth["snapshot"].to_list()

    def draw(figure: Figure) -> None:
        # Two panels rather than two axes on one: evidence outnumbers topics many times over.
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 2))
        _lines(upper, runs, growth, ["active", "archived", "merged"], "topics")
        _lines(lower, runs, growth, ["evidence"], "evidence")
        lower.set_xlabel("snapshot")
        lower.xaxis.get_major_locator().set_params(integer=True)
        lower.set_xlim(runs[0] - 0.3, runs[-1] + 0.3)

    return _svg("growth", f"Topics and evidence over {len(runs):,} runs", draw)


def _stacked(axes: Any, edges: Any, values: dict[str, Any]) -> None:
    """Bars by state, one on another; `Axes.hist` would also draw one of no height for each bin without a topic."""
    import numpy as np

    below = np.zeros(len(edges) - 1)
    for state, of_state in values.items():
        counts, _ = np.histogram(of_state, edges)
        (bins,) = counts.nonzero()
        widths = np.diff(edges)[bins]
        place = {"x": edges[bins] + widths * (1 - BAR) / 2, "width": widths * BAR, "bottom": below[bins]}
        bars = axes.bar(height=counts[bins], align="edge", color=SERIES[state], **place)
        bars[0].set_label(state)  # a label of all bars would come last in the legend
        below += counts


def _lines(axes: Any, runs: list[int], growth: pl.DataFrame, names: list[str], label: str) -> None:
    marker = "o" if len(runs) <= MOST_DOTS else ""
    for name in names:
        axes.plot(runs, growth[name].to_list(), color=SERIES[name], label=name, marker=marker, **DOTTED)
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    _count_axis(axes)
    if len(names) > 1:
        _legend(axes)


def _count_axis(axes: Any) -> None:
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.get_major_locator().set_params(integer=True, nbins=4)


def _legend(axes: Any) -> None:
    place = {"loc": "upper left", "bbox_to_anchor": (0, 1), "bbox_transform": axes.figure.transFigure}
    axes.legend(**place, ncols=4, columnspacing=1.2, borderpad=0.2)


def _svg(name: str, description: str, draw: Any) -> str:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = io.StringIO()
    with rc_context(STYLE | {"svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
        FigureCanvasSVG(figure)
        draw(figure)
        _margins(figure)
        unsigned = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=unsigned)
    return _for_page(out.getvalue(), name, description)


def _margins(figure: Figure) -> None:
    """Room for labels and legends. The layout engines of matplotlib measure every text, twice the cost of drawing."""
    most = max(axes.get_ylim()[1] for axes in figure.axes)
    left = LABEL + CHARACTER * len(f"{most:,.0f}")
    figure.subplots_adjust(left / WIDTH, 0.17, 0.965, 0.89, hspace=0.3)


def _for_page(document: str, name: str, description: str) -> str:
    svg = document[document.index("<svg") :]
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    for placeholder, colour in IN_PAGE.items():
        svg = svg.replace(placeholder, colour)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{description}" ', 1).strip()
