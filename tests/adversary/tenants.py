"""Two tenants over HTTP: what one of them is answered is alike in two worlds that differ only in the other's rows.

In one world the other tenant has rows from the beginning and sends requests between mine; in the other world there is
nobody else. The same requests of mine go to a real server of each world, before and after a night.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from memstate_core.ingest.accesses.collect import collect_accesses
from memstate_core.ingest.inbox import import_inbox
from memstate_core.model.ids import uuid_text
from memstate_core.revise.verdicts import verdict_decisions
from memstate_core.run.store import Store
from memstate_core.serve.options import Options
from tests.adversary.attack import Row, a_store, imported
from tests.adversary.requests import Request, reads, sequence
from tests.adversary.rows import MINE, SECRET, THEIRS, blocks, hostile, rows_of, twins
from tests.core.night.corrections import decide, shard
from tests.core.revise.nights import night, topics
from tests.core.serve.conftest import Answer, Client, served
from tests.core.serve.scopes.two_scopes import key_for
from tests.core.strategies import EPOCH, day

_CHANGING = frozenset({"file", "request_id", "version_ids"})
"""Keys of answers that differ from request to request; `version_ids` follow from all that was written."""
Seen = tuple[Request, int, str, Any]
"""A request of mine, and the status, content type and document that answered it."""


class World:
    """A store with a key for each tenant."""

    def __init__(self, folder: Path, rows: list[Row], scopes: Sequence[str]) -> None:
        self.store = a_store(folder)
        imported(self.store, rows, at=4)
        night(self.store, 5)
        pairs = [(uuid_text("key", scope, "ada"), uuid_text("key", scope, "al"), "same") for scope in scopes]
        verdicts = verdict_decisions(shard(self.store), pairs)
        assert verdicts is not None
        decide(self.store, verdicts, 5.5)
        self._keys = {
            scope == MINE: key_for(self.store, scope.partition(":")[2], "admin", [scope], number)
            for number, scope in enumerate((MINE, THEIRS), start=1)
        }

    def answers(self, requests: Sequence[Request]) -> list[Seen]:
        """Sends requests in order to a server of this world; returns the answers to mine."""
        with served(self.store, Options(rate_limit=0, record=False)) as client:
            client.until_ready()
            seen = []
            for request in requests:
                for answer in self._answered(client, request):
                    assert answer.status < 500, (request, answer.content)
                    assert answer.status not in (401, 429), request
                    if request.is_mine:
                        assert SECRET.encode() not in answer.content, request
                        kind = str(answer.headers["content-type"])
                        seen.append((request, answer.status, kind, _lasting(answer.document)))
            return seen

    def _answered(self, client: Client, request: Request) -> list[Answer]:
        """The answer, and those of the later pages."""
        headers = {"X_API_Key": self._keys[request.is_mine], "X_Request_Id": "attack"}
        found = [client(request.method, request.path, request.body, **headers)]
        while request.follows and found[-1].status == 200 and (cursor := found[-1].document["next_cursor"]):
            first, _, _ = request.path.partition("&cursor=")
            found.append(client("GET", f"{first}&cursor={cursor}", **headers))
        return found

    def night(self, at: int) -> None:
        """A night with what the server wrote."""
        store = self.store
        import_inbox(store.home, store.ledger, store.settings, now=day(at), run_id=f"inbox-{at}")
        collect_accesses(store.home, store.ledger, store.settings, day(at), f"accesses-{at}")
        night(store, at)


def attack(random: Random, folder: Path, count: int = 40) -> int:
    """A sequence of requests to the worlds with and without the other tenant, a night, and reads of what it made."""
    mine = [*rows_of(random, MINE, 12, "mine"), *twins(MINE)]
    theirs = [*hostile(random, 12), *twins(THEIRS)]
    shared, alone = (
        World(folder / name, rows, scopes)
        for name, rows, scopes in (("shared", [*mine, *theirs], (MINE, THEIRS)), ("alone", mine, (MINE,)))
    )
    ids = _ids(shared.store)
    requests = sequence(random, ids, count)
    cases = _compared(shared, alone, requests)
    tomorrow = (datetime.now(UTC) - EPOCH).days + 2
    for world in (shared, alone):
        world.night(tomorrow)
    return cases + _compared(shared, alone, reads(random, ids, count // 4))


def _compared(shared: World, alone: World, requests: Sequence[Request]) -> int:
    with_them = shared.answers(requests)
    without = alone.answers([request for request in requests if request.is_mine])
    assert len(with_them) == len(without)
    for one, other in zip(with_them, without, strict=True):
        assert alike(one[1:], other[1:]), f"rows of another tenant change an answer: {one} {other[1:]}"
    return len(with_them)


def _ids(store: Store) -> list[str]:
    """Ids of topics of both tenants, merged ones included, of topics that may come, and of none."""
    found = topics(store).sort("id")
    merged = found.filter(found["state"] == "merged")
    assert set(merged["scope"]) == {MINE, THEIRS}, "no merged topics to ask for"
    coming = [uuid_text("key", scope, key) for scope in (MINE, THEIRS) for key in ("mine0", "mine3", "unused")]
    coming += [*blocks(MINE), *blocks(THEIRS)]
    return [*merged["id"], *dict.fromkeys([*found["id"], *coming]), "no-such-topic"]


def _lasting(document: Any) -> Any:
    """A document without what differs from request to request."""
    if isinstance(document, Mapping):
        return {key: value for key, value in document.items() if key not in _CHANGING}
    return document


def alike(one: Any, other: Any) -> bool:
    """Equal but for rounding: vectors differ in their last digits with the batch that they are computed in."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=2e-6)  # answers have six decimals
    return bool(one == other)
