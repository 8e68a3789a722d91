"""The state hash follows every form of `memory`, key by key, so that equal hashes mean that nothing of one is lost."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS
from memstate_core.state.graph import Graph, open_graph
from memstate_core.state.state_hash import state_hash
from tests.core.forms import formed, others, sample
from tests.core.strategies import BUFFER_MIB, SCOPES, day, fill, folded, observation

pytestmark = pytest.mark.slow


NAMED = [
    observation(100 + number, topic_key=f"{mark} {name}")
    for number, (mark, name) in enumerate(product(("first", "second"), ("target", "object_item")))
]
"""Topics that relations and records of the samples lead to."""


def hashed(graph: Graph, form: type[Form], *memories: dict[str, Any]) -> str:
    """The hash of a store of these records of a form."""
    taken = [formed({"type": form.form()} | each, SCOPES[0], day(n), f"o{n}") for n, each in enumerate(memories)]
    stream = [observation(n, observed_at=day(n), **each) for n, each in enumerate(taken)]
    fill(graph, folded([*stream, *NAMED]))
    return state_hash(graph)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.form())
def test_every_key_of_every_form_counts(tmp_path: Path, form: type[Form]) -> None:
    given = sample(form, "first ")
    with open_graph(tmp_path / "graph.kuzu", buffer_mib=BUFFER_MIB) as graph:
        hashes = {"nothing": hashed(graph, form), "": hashed(graph, form, given)}
        for name, value in others(form, given):
            hashes[name] = hashed(graph, form, given | {name: value})
        assert hashed(graph, form, given) == hashes[""]
    assert len(set(hashes.values())) == len(hashes) == 2 + len(given), hashes
