"""Folds that fail on some of their input, whether everything is folded or only what changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memstate_core.state.fold import fold as whole
from memstate_core.state.fold import refold as part

_OWN = whole.fold_topics


def break_folds(patch: pytest.MonkeyPatch, is_broken: Callable[..., bool], error: Exception) -> None:
    """Makes every fold raise an error where its arguments, those of `fold_topics`, are so."""

    def fail(*given: Any) -> Any:
        if is_broken(*given):
            raise error
        return _OWN(*given)

    for module in (whole, part):
        patch.setattr(module, "fold_topics", fail)
