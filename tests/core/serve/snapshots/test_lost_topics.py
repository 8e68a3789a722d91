"""What a server does between two polls when a subject is erased: it answers from, and records of, what is left."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstate_core.model.errors import StoreNotFound
from memstate_core.run.store import Store
from memstate_core.serve.accesses import Access, AccessRecorder
from memstate_core.serve.options import Options
from memstate_core.serve.snapshots.lost_topics import LostTopics
from memstate_core.serve.snapshots.swap import Serving
from memstate_core.state.files import make_folder
from memstate_core.state.graph import TOPIC
from memstate_core.state.snapshots import MANIFEST
from tests.core.retrieve.conftest import Store as Draft
from tests.core.serve.conftest import Publish

pytestmark = pytest.mark.slow

AT = datetime(2026, 4, 6, tzinfo=UTC)


def both(draft: Draft) -> None:
    draft.topic("boat", title="Boat of Bo")
    yard(draft)


def yard(draft: Draft) -> None:
    draft.topic("yard", title="Boat yard")
    draft.says("yard", "Boats are painted in the yard.", on=1)


@pytest.fixture
def store(tmp_path: Path, publish: Publish) -> Store:
    return publish(tmp_path / "home", both)


def erase_boat(store: Store, publish: Publish) -> None:
    """As an erasure does: a new snapshot, the old ones go, and a certificate."""
    publish(store.home.root, yard, 2)
    shutil.rmtree(store.home.snapshots("s0") / "1")
    make_folder(store.home.erasures)
    (store.home.erasures / "1.json").write_text("{}")


def titles(serving: Serving) -> set[str]:
    return serving.read(lambda generation: set(generation.readers[0].graph.read(TOPIC, ["title"])["title"]))


def test_the_first_question_after_an_erasure_waits_for_no_poll(store: Store, publish: Publish) -> None:
    serving = Serving(store)
    serving.refresh()
    assert titles(serving) == {"Boat of Bo", "Boat yard"}
    erase_boat(store, publish)
    assert titles(serving) == {"Boat yard"}
    assert serving.open_snapshots == 1
    serving.close()


def test_nothing_is_answered_if_what_an_erasure_published_cannot_be_opened(store: Store, publish: Publish) -> None:
    serving = Serving(store)
    serving.refresh()
    erase_boat(store, publish)
    manifest = store.home.snapshots("s0") / "2" / MANIFEST
    sound = manifest.read_bytes()
    manifest.write_text("{")
    with pytest.raises(StoreNotFound):
        titles(serving)
    assert serving.open_snapshots == 0
    manifest.write_bytes(sound)
    serving.refresh()
    assert titles(serving) == {"Boat yard"}
    serving.close()


def test_accesses_of_erased_topics_are_not_written(store: Store, publish: Publish) -> None:
    serving = Serving(store)
    serving.refresh()
    recorder = AccessRecorder(store.home.accesses, Options(), erased=LostTopics(serving, store.home))
    recorder.record([Access(topic, AT, "user:a") for topic in ("boat", "yard")])
    erase_boat(store, publish)
    recorder.flush()
    recorder.record([Access("yard", AT, "user:a")])
    recorder.close()
    serving.close()
    (segment,) = store.home.accesses.iterdir()
    assert (segment.read_text().count('"yard"'), segment.read_text().count('"boat"')) == (2, 0)
