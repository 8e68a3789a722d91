"""The scores of segmentations and key phrases, and our key phrases beside those of yake."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

pytestmark = pytest.mark.slow  # nltk alone takes two seconds to import


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script as a module; it is outside of any package, beside the modules that it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        yield import_module("chat_text")


@pytest.fixture(scope="module")
def turns(script: ModuleType) -> pl.DataFrame:
    found = script.chats(script.Spec(150, 1, 2, 3))
    assert isinstance(found, pl.DataFrame)
    return found


def test_true_cuts_have_no_error_and_missing_ones_do(script: ModuleType, turns: pl.DataFrame) -> None:
    true = (turns["segment"] != turns["segment"].shift(1)).fill_null(True).to_list()
    perfect = script.cuts(turns, lambda _: true)
    assert (perfect.windowdiff, perfect.pk) == (0, 0)
    assert perfect.boundaries > 1
    none = script.cuts(turns, lambda _: [False] * turns.height)
    assert min(none.windowdiff, none.pk) > 0.2
    assert none.boundaries == 0


def test_the_tiling_of_nltk_covers_every_turn(script: ModuleType, turns: pl.DataFrame) -> None:
    starts = script.cut_by_words(20, 10)(turns)
    assert len(starts) == turns.height
    assert sum(starts) >= turns["session_id"].n_unique()


def test_our_key_phrases_cover_more_of_a_subject_than_those_of_yake(script: ModuleType, turns: pl.DataFrame) -> None:
    ours, theirs = (script.phrases(turns, method) for method in (script.our_phrases, script.yake_phrases))
    assert ours.recall > theirs.recall
    assert ours.precision > 0.9
