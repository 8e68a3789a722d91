"""Nights that merge what people's answers confirm: pairs that waited, pairs that came later, and after an undo."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from memstate_core.night.checks.suite import served_conditions
from memstate_core.night.rejudge import rejudge
from memstate_core.night.verify import verify_store
from memstate_core.revise.merge_history import merge_list
from memstate_core.revise.suggestions import drawn
from memstate_core.revise.verdicts import open_pairs, verdict_decisions
from memstate_core.run.store import Store, open_store
from tests.core.night.checks.damage import Damage, Home, forget, rewrite
from tests.core.night.corrections import decide, shard, undo
from tests.core.revise.matching.people import observations, people
from tests.core.revise.nights import Night, ids, night, record

pytestmark = pytest.mark.slow

PEOPLE, TWICE, ENOUGH = 260, 90, 59
LAST_MERGE = (pl.col("kind") == "merged") & (pl.col("seq") == pl.col("seq").max().over("kind"))
AN_ANSWER = (pl.col("kind") == "judged") & (pl.col("seq") == pl.col("seq").max().over("kind"))


def listed(store: Store, name: str, seed: int, at: int) -> None:
    """Imports a list of people, some of whom are in it twice; the names of observations begin with that of the list."""
    record(store, observations(people(PEOPLE, TWICE, seed), name), at)


def answer(store: Store, count: int, at: float) -> list[tuple[str, str]]:
    """Answers `same` to the first open questions."""
    asked = open_pairs(shard(store)).select("a", "b").rows()[:count]
    decide(store, verdict_decisions(shard(store), [(a, b, "same") for a, b in asked]), at)
    return asked


def confirmed(store: Store) -> pl.DataFrame:
    """The merges in force that answers confirm."""
    made = merge_list(shard(store)).filter(~pl.col("undone"))
    return made.filter(pl.col("reason").str.ends_with("answers about such pairs confirm it"))


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Night, dict[str, str]]:
    """A store after a night, ENOUGH answers, and a second night; the topic of each observation before that."""
    store = open_store(tmp_path_factory.mktemp("answered"), {})
    listed(store, "first", 0, 1)
    assert night(store, 2).merged.counts["merges"] == 0
    named = ids(store)
    assert len(answer(store, ENOUGH, 3)) == ENOUGH
    return store.home.root, night(store, 4), named


def test_the_rest_of_the_pairs_is_merged_once_enough_answers_are_given(
    answered: tuple[Path, Night, dict[str, str]],
) -> None:
    home, after, named = answered
    store = open_store(home, {})
    made = confirmed(store)
    twins = {named[f"first{place:04}"]: named[f"first{PEOPLE + place:04}"] for place in range(TWICE)}
    assert after.merged.counts["merges"] == after.found.counts["confirmed"] == made.height == TWICE - ENOUGH
    assert set(made.select("survivor", "dropped").rows()) <= set(twins.items())
    assert after.merged.counts["expected_false_merges"] < 1
    assert made["reason"].str.ends_with(f"; {ENOUGH} answers about such pairs confirm it").all()
    assert open_pairs(shard(store)).is_empty()


def test_the_checks_and_today_s_model_agree_with_confirmed_merges(
    answered: tuple[Path, Night, dict[str, str]],
) -> None:
    store = open_store(answered[0], {})
    verdicts = [verdict for shard in verify_store(store).values() for verdict in shard]
    assert verdicts
    assert all(verdict.passed for verdict in verdicts)
    judged = rejudge(store, shard(store))
    assert (judged.refused, judged.judged) == ([], TWICE - ENOUGH)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (
            rewrite(LAST_MERGE, confirmed_by=ENOUGH - 1),
            f"merged since fewer answers confirm it than {ENOUGH}, which it takes",
        ),
        (rewrite(LAST_MERGE, confirmed_by=ENOUGH + 1), "merged since more answers confirm it than are recorded"),
        (forget(AN_ANSWER), "merged since more answers confirm it than are recorded"),
    ],
)
def test_a_confirmed_merge_needs_the_answers_that_it_names(
    answered: tuple[Path, Night, dict[str, str]], tmp_path: Path, damage: Damage, problem: str
) -> None:
    home = Home(shutil.copytree(answered[0], tmp_path / "home"))
    damage(home)
    checked = served_conditions(home.store, Home(home.store.home.root).snapshot)
    assert checked is not None
    assert [name[:2] for name, check in checked.items() if not check.passed] == ["C2"]
    assert {row for check in checked.values() for row in check.violations["problem"]} == {problem}


@pytest.mark.parametrize(("undone", "merges"), [(False, TWICE - ENOUGH), (True, 0)])
def test_what_comes_later_takes_later_answers(
    answered: tuple[Path, Night, dict[str, str]], tmp_path: Path, undone: bool, merges: int
) -> None:
    """A merge that a person undid meanwhile is an answer `different`, so as many others do not suffice."""
    store = open_store(Path(shutil.copytree(answered[0], tmp_path / "home")), {})
    listed(store, "second", 1, 5)
    assert night(store, 6).merged.counts["merges"] == 0
    waiting = open_pairs(shard(store))
    assert waiting.height == TWICE
    assert waiting["a"].to_list() == waiting.sort(drawn())["a"].to_list() != waiting.sort("a", "b")["a"].to_list()
    if undone:
        undo(store, confirmed(store)["dropped"][0], 7)
    answer(store, ENOUGH, 8)
    assert night(store, 9).merged.counts["merges"] == merges
