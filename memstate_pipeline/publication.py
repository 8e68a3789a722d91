"""Publishing to a URL as a part of other work: it follows the local publication, which no failure here undoes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memstate_core.model.errors import MemstateError
from memstate_core.night.publication.note import last_publication
from memstate_core.run.store import Store
from memstate_pipeline.resources import TRIAL_TAG


def publish_shard(store: Store, shard: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Publishes what a shard serves to the URL of the settings, if there is one.

    Args:
        store: the store.
        shard: the shard that a night has just published.
        tags: the tags of its run; a trial on a clone publishes nothing.

    Returns:
        Metadata of Dagster: `published_to`, and `not_published` with the reason if it failed.
    """
    url = store.settings.publish.url
    if not url or TRIAL_TAG in tags:
        return {}
    from memstate_core.night.publication.publish import publish_to

    try:
        publish_to(store, url, [shard])
    except (MemstateError, OSError) as error:
        return {"published_to": url, "not_published": str(error)}
    return {"published_to": url}


def unpublished(store: Store, shards: list[str] | None = None, tags: Mapping[str, str] | None = None) -> list[str]:
    """Warnings about shards whose last snapshot is not at the URL of the settings."""
    note, url = last_publication(store.home), store.settings.publish.url
    if note is None or note.where != url or TRIAL_TAG in (tags or {}):
        return []
    problems = {shard: text for shard, text in note.problems.items() if shards is None or shard in shards}
    return [f"{shard} is published here, but not for replicas: {text}" for shard, text in problems.items()]
