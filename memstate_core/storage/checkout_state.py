"""Which state of a store at a URL a checkout has, for those who watch it; read from its note, so nothing is fetched."""

from __future__ import annotations

from msgspec import Struct
from msgspec import json as msgjson

from memstate_core.model.answers import CheckoutState
from memstate_core.model.text import iso
from memstate_core.state.home import Home
from memstate_core.storage.head import State


class _Noted(Struct, frozen=True):
    """The part of a checkout's note that is used here."""

    state: State | None = None
    dirty: bool = False
    absent: list[str] = []


def checkout_state(home: Home, url: str) -> CheckoutState | None:
    """The state that a home has of the store at a URL; None if the store is the home, or nothing was fetched or sent.

    Args:
        home: the home.
        url: where the settings say that the store is kept; empty for its home.
    """
    if not url or home.local_only.exists():
        return None
    try:
        noted = msgjson.decode(home.checkout.read_bytes(), type=_Noted)
    except (OSError, ValueError):
        return None
    number, at = (0, None) if noted.state is None else (noted.state.number, iso(noted.state.at))
    return CheckoutState(url=url, state=number, at=at, unsent=noted.dirty, absent=noted.absent)
