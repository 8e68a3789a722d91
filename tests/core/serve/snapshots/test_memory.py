"""What a closed snapshot leaves behind: no mapped file, so that neither memory nor disk fills as nights go by."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from memstate_core.retrieve.packs.context import context_pack
from memstate_core.retrieve.packs.grounds import with_warnings
from memstate_core.retrieve.query import Question, answer
from memstate_core.retrieve.routing import AUTO
from memstate_core.serve.snapshots.generation import Generation
from memstate_core.serve.snapshots.swap import Serving
from tests.core.serve.conftest import Publish, harbour


def ask(generation: Generation) -> None:
    """Fills every cache of the snapshot that a context pack uses."""
    question = Question("When is the boat hauled out?", None, 5, 5, policy=AUTO)
    found = answer(generation.readers, generation.encoder, None, question)
    pack = context_pack(found, 500, len, counted_by="characters")
    with_warnings(pack, generation.readers, None, None, None)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which files are mapped")
def test_a_snapshot_that_is_closed_has_no_mapped_file(tmp_path: Path, publish: Publish) -> None:
    store = publish(tmp_path / "home", harbour)
    serving = Serving(store)
    gc.disable()  # what only the collector of cycles lets go of, a server may hold for long
    try:
        serving.refresh()
        serving.read(ask)
        assert str(store.home.snapshots("s0") / "1") in Path("/proc/self/maps").read_text()
        publish(tmp_path / "home", harbour, 2)
        serving.refresh()
        mapped = Path("/proc/self/maps").read_text()
        assert str(store.home.snapshots("s0") / "2") in mapped
        assert str(store.home.snapshots("s0") / "1") not in mapped
    finally:
        gc.enable()
        serving.close()
