"""Which topic ids a caller with limited scopes may write to: those of topics in the scope of the observation.

An id belongs to the scope that uses it first, and ids made from keys and titles can be computed by anybody. If unknown
ids were accepted, a caller could occupy the id of another scope's future topic; if foreign ones were, a back-dated
observation could take over an existing one. So an id has to be known in its scope: as a served topic, as an alias, or
as a topic that an accepted observation makes by a key or by its placement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import polars as pl

from memstate_core.ingest.reasons import Reason
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.serve.observations import Accepted, ObservationsRefused
from memstate_core.state.graph import TOPIC

Owned = set[tuple[str, str]]
"""Scopes and ids of topics."""

EXPECTED = "the id of a topic in its scope; `topic_key` names a new one"


def check_topic_ids(
    accepted: Accepted, readers: Sequence[SnapshotReader], pending: Callable[[list[str], list[str]], Owned]
) -> None:
    """Refuses observations that name a topic by an id which is unknown in their scope or belongs to another one.

    Args:
        accepted: the observations.
        readers: the open snapshots; none before the first one.
        pending: gives the topics with some ids that unpublished observations of some scopes make. It is called only
            for ids that no snapshot knows.

    Raises:
        ObservationsRefused: names each that is refused.
    """
    unknown = _unknown(accepted.given, accepted.made | _served(accepted.given, readers))
    if unknown:
        ids, scopes = ({name for _, _, name in unknown}, {scope for _, scope, _ in unknown})
        unknown = _unknown(unknown, pending(sorted(ids), sorted(scopes)))
    if unknown:
        raise ObservationsRefused(
            [
                (place, Reason.BAD_VALUE.value, f"$.topic_id is {name[:100]!r}, expected {EXPECTED}")
                for place, _, name in unknown
            ]
        )


def _unknown(given: Sequence[tuple[int, str, str]], owned: Owned) -> list[tuple[int, str, str]]:
    return [each for each in given if each[1:] not in owned]


def _served(given: Sequence[tuple[int, str, str]], readers: Sequence[SnapshotReader]) -> Owned:
    """The topics and aliases among the given ids that the snapshots have in the scopes of the observations."""
    if not given:
        return set()
    ids, scopes = sorted({name for _, _, name in given}), sorted({scope for _, scope, _ in given})
    where = "r.id IN $ids AND r.scope IN $scopes"
    topics = [reader.graph.read(TOPIC, ["scope", "id"], where, ids=ids, scopes=scopes) for reader in readers]
    aliases = [
        reader.aliases.filter(pl.col("alias").is_in(ids) & pl.col("scope").is_in(scopes)).select("scope", "alias")
        for reader in readers
    ]
    return set(chain.from_iterable(frame.iter_rows() for frame in (*topics, *aliases)))
