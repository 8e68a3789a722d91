"""Publishing to a URL, and fetching from there what replicas accepted, as a part of other work.

A failure here undoes nothing of a night: it publishes for this home what it has, and warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from memstate_core.model.errors import MemstateError
from memstate_core.night.publication.note import last_publication, not_arrived
from memstate_core.run.store import Store
from memstate_core.state.fetch_note import read_fetch_note
from memstate_core.state.snapshots import Snapshot
from memstate_pipeline.resources import PLAN_TAG, TRIAL_TAG


def publish_shard(store: Store, shard: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Publishes what a shard serves to the URL of the settings, if there is one.

    Args:
        store: the store.
        shard: the shard.
        tags: the tags of its run; a trial on a clone publishes nothing.

    Returns:
        Metadata of Dagster: `published_to`, and `not_published` with the reason if it failed.
    """
    url = store.settings.publish.url
    if not url or TRIAL_TAG in tags:
        return {}
    from memstate_core.night.publication.upload import publish_to

    try:
        publish_to(store, url, [shard])
    except (MemstateError, OSError) as error:
        return {"published_to": url, "not_published": str(error)}
    return {"published_to": url}


def publish_unchanged(store: Store, served: Iterable[Snapshot], tags: Mapping[str, str]) -> list[str]:
    """Publishes what shards without a night serve, where that is not at the URL yet; returns what failed."""
    shards = not_arrived(store.home, store.settings.publish.url, served)
    outcomes = {shard: publish_shard(store, shard, tags).get("not_published") for shard in shards}
    return [f"{shard} is not published for replicas: {problem}" for shard, problem in outcomes.items() if problem]


def publish_all(store: Store) -> str | None:
    """Publishes what every shard serves to the URL of the settings, if there is one; returns why that failed."""
    return publish_shard(store, store.shards[0], {}).get("not_published")


def fetch_writes(store: Store, tags: Mapping[str, str]) -> str | None:
    """Copies what replicas accepted into the home, for the import of a night; returns why that failed, or None.

    A trial on a clone fetches nothing, and neither does a run that is held to a plan, which knows what it imports.
    """
    from memstate_core.night.publication.fetch import fetch_inbox

    return _attempted(store, tags, lambda url: fetch_inbox(store, url, datetime.now(UTC)))


def release_writes(store: Store, tags: Mapping[str, str]) -> str | None:
    """Removes at the URL what a night has imported; returns why that failed, or None."""
    from memstate_core.night.publication.fetch import release_imported

    return _attempted(store, tags, lambda url: release_imported(store, url))


def _attempted(store: Store, tags: Mapping[str, str], act: Callable[[str], object]) -> str | None:
    from memstate_core.night.publication.fetch import inbox_url

    url = inbox_url(store.home, store.settings)
    if url is None or TRIAL_TAG in tags or PLAN_TAG in tags:
        return None
    try:
        act(url)
    except (MemstateError, OSError) as error:
        return str(error)
    return None


def unpublished(store: Store, shards: list[str] | None = None, tags: Mapping[str, str] | None = None) -> list[str]:
    """Warnings about what is not at the URL of the settings, and about writes of replicas that are there still."""
    if TRIAL_TAG in (tags or {}):
        return []
    return [*_unpublished(store, shards), *_unfetched(store)]


def _unfetched(store: Store) -> list[str]:
    note = read_fetch_note(store.home)
    if note is None or note.where != store.settings.publish.url or note.problem is None:
        return []
    return [f"what replicas accepted could not be fetched: {note.problem}"]


def _unpublished(store: Store, shards: list[str] | None) -> list[str]:
    note, url = last_publication(store.home), store.settings.publish.url
    if note is None or note.where != url:
        return []
    problems = {shard: text for shard, text in note.problems.items() if shards is None or shard in shards}
    return [f"{shard} is published here, but not for replicas: {text}" for shard, text in problems.items()]
