"""Plots in the metadata of assets: bars in proportion, rendered as tables, in a real night."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from markdown_it import MarkdownIt

from memstate_core.model.frames import empty
from memstate_core.model.step_frames import PAIRS
from memstate_core.state.home import Home
from memstate_pipeline.asset_plots import WIDTH, growth_of, probabilities, salience_by_decade, seconds_of, with_bars
from memstate_pipeline.instance import dagster_instance
from tests.core.frames import filled


def test_bars_are_in_proportion_and_nothing_small_disappears() -> None:
    rows = pl.DataFrame({"n": [10.0, 5.0, 0.01, 0.0, -3.0, None, float("nan"), float("inf")]})
    assert with_bars(rows, "n")["plot"].to_list() == ["█" * WIDTH, "█" * (WIDTH // 2), "▏", "", "", "", "", ""]
    assert with_bars(rows.filter(pl.col("n") <= 0), "n")["plot"].to_list() == ["", ""]
    assert with_bars(rows.clear(), "n").is_empty()


def test_probabilities_are_counted_in_tenths() -> None:
    found = pl.DataFrame(
        {"probability": [0.0, 0.59, 0.6, 0.95, 1.0], "band": ["review", "review", "review", *["merge"] * 2]}
    )
    (shown,) = probabilities(filled(found, PAIRS)).values()
    counted = shown.filter((pl.col("to_merge") > 0) | (pl.col("to_review") > 0))
    assert counted.select("probability", "to_merge", "to_review").rows() == [
        ("0.0 to 0.1", 0, 1), ("0.5 to 0.6", 0, 1), ("0.6 to 0.7", 0, 1), ("0.9 to 1.0", 2, 0),
    ]  # fmt: skip
    assert shown["plot"].to_list()[-1] == "█" * WIDTH


def test_salience_is_counted_in_powers_of_ten() -> None:
    (shown,) = salience_by_decade(pl.DataFrame({"salience": [0.0, 0.001, 0.5, 0.9, 7.0]})).values()
    assert dict(shown.select("salience", "topics").rows()) == {
        "below 0.001": 1, "from 0.001": 1, "from 0.01": 0, "from 0.1": 2, "from 1": 1,
    }  # fmt: skip


def test_growth_shows_the_last_snapshots_and_nothing_is_drawn_of_nothing() -> None:
    kept = pl.DataFrame({"snapshot": range(1, 31), "active": range(30), "evidence": range(30)})
    (shown,) = growth_of(kept).values()
    assert shown["snapshot"].to_list() == list(range(19, 31))
    assert [growth_of(kept.clear()), seconds_of({}), probabilities(empty(PAIRS))] == [{}, {}, {}]


@pytest.mark.slow
def test_a_night_draws_its_steps_and_names_topics_by_their_titles(demo_home: Path) -> None:
    with dagster_instance(Home(demo_home)) as instance:
        of_asset = {name: metadata(instance, name) for name in ("duplicate_pairs", "merges", "salience")}
        report = metadata(instance, "maintenance_report")
    plots = [
        of_asset["duplicate_pairs"]["probabilities"],
        of_asset["salience"]["salience of topics"],
        report["growth"],
        report["seconds by step"],
    ]
    for plot in plots:
        assert f"<td><code>{'█' * WIDTH}</code></td>" in MarkdownIt("commonmark").enable("table").render(plot), plot
    assert "`forgetting`" in report["seconds by step"]
    assert of_asset["duplicate_pairs"]["pairs"].startswith(
        "| title_a | title_b | probability | weight | band | scope |\n"
    )
    assert of_asset["merges"]["merged"].count("](http://127.0.0.1:8420/v1/topics/") == 6
    assert report["open"].startswith("http://127.0.0.1:8420/v1/reports/")
    assert of_asset["merges"]["merged"].startswith("| dropped_title | survivor_title | probability |")


def metadata(instance: dg.DagsterInstance, name: str) -> dict[str, str]:
    """The texts that the newest materialization of an asset shows, by title."""
    event = instance.get_latest_materialization_event(dg.AssetKey(name))
    assert event is not None
    assert event.asset_materialization is not None
    return {title: str(shown.value) for title, shown in event.asset_materialization.metadata.items()}
