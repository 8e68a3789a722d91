"""Progress reaches every listener of the block, and none outside it."""

from __future__ import annotations

from memstate_core.model.progress import Progress, progress_to, report_progress, tracked


def test_tracked_work_is_reported_before_its_first_item_and_after_each() -> None:
    seen: list[Progress] = []
    with progress_to(seen.append):
        assert list(tracked(["ab", "c"], "encode", 3, "letters", len)) == ["ab", "c"]
    assert seen == [Progress("encode", done, 3, "letters") for done in (0, 2, 3)]


def test_more_work_than_announced_stays_at_the_total() -> None:
    seen: list[Progress] = []
    with progress_to(seen.append):
        list(tracked(range(3), "copy", 2, "files"))
    assert [progress.done for progress in seen] == [0, 1, 2, 2]


def test_listeners_nest_and_end_with_their_block() -> None:
    outer: list[Progress] = []
    inner: list[Progress] = []
    one, two, three = (Progress("phase", at, 3, "units") for at in (1, 2, 3))
    with progress_to(outer.append):
        with progress_to(inner.append):
            report_progress(one)
        report_progress(two)
    report_progress(three)
    assert (outer, inner) == ([one, two], [one])
