"""Whether a storage honours the conditions of puts, on which leases, states, CURRENT and locks at a URL depend.

Some servers, and proxies that leave out headers which they do not know, put an object whatever the condition says. Two
writers would then replace what the other one wrote, and neither would notice. So it is tried before the first state of
a store, the first snapshot or the first backup is sent to a URL, and by `memstate doctor`: some 17 requests, on an
object that is removed. No trial proves that a storage is right at every moment; it finds those that ignore conditions.
"""

from __future__ import annotations

from memstate_core.model.errors import ConditionalPutsIgnored
from memstate_core.storage.concurrent_requests import at_once
from memstate_core.storage.storage import Conflict, Storage
from memstate_core.storage.transient import sweep_transient, transient_name

_RIVALS = 4
"""How many writers try the same put at once."""


def require_conditional_puts(place: Storage, mark: str) -> None:
    """Refuses a storage that ignores the condition of a put, or refuses puts whose condition holds.

    Args:
        place: the storage.
        mark: the folder that marks it (`Purpose.mark`), in which the trial is made.

    Raises:
        ConditionalPutsIgnored: it does; the objects of the trial were removed.
        StoreUnreachable: it does not answer, or refuses to be read, written or listed; for another purpose its own
            error.
    """
    name = transient_name(mark, "probe")
    try:
        problem = _problem(place, name)
    finally:
        listed = place.listed(mark)
        sweep_transient(place, listed, name)
        place.remove({name, *(each for each in listed if name.rpartition("/")[2] in each)})
    if problem:
        raise ConditionalPutsIgnored(place.where, problem)


def _problem(place: Storage, name: str) -> str:
    """What is wrong with the conditional puts of a storage; empty if nothing is.

    An answer that is lost makes a writer that succeeded look like one that was refused, so none may be left over.
    """
    created = sum(at_once(lambda content: place.create(name, content), _contents("created")))
    if created > 1:
        return f"of {_RIVALS} writers that created one object at once, {created} succeeded"
    found = place.read(name)
    if found is None:
        return "it refused to create an object that did not exist"
    if place.create(name, b"created later"):
        return "it created an object that existed"
    version = found[1]
    replaced = sum(at_once(lambda content: _is_replaced(place, name, content, version), _contents("replaced")))
    if replaced > 1:
        return f"of {_RIVALS} writers that replaced one version of an object at once, {replaced} succeeded"
    if replaced == 0:
        return "it refused to replace an object of the version that it gave"
    if _is_replaced(place, name, b"replaced later", version):
        return "it replaced an object of a version that was gone"
    return ""


def _contents(begin: str) -> list[bytes]:
    return [f"{begin} by writer {number}".encode() for number in range(_RIVALS)]


def _is_replaced(place: Storage, name: str, content: bytes, version: str) -> bool:
    try:
        place.replace(name, content, version)
    except Conflict:
        return False
    return True
