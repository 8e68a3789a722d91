"""Policies of context packs: which layers of the memory each reads.

Core blocks are in every pack. A policy decides what else: active session states, and what is searched for. Session
states have a section of their own and are not searched for, so those that are blocked or complete are in no pack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, get_args

from memstate_core.model.forms.resource import Resource
from memstate_core.model.forms.session_state import SessionState

Policy = Literal["auto", "task", "workspace"]

AUTO: Final = "auto"
APART: Final = SessionState.topic_kind()
"""The kind of topics that no pack lists among those that it found."""

POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True)
class Route:
    """What a pack reads beside core blocks.

    Attributes:
        sessions: active session states.
        search: the question is searched for; otherwise it is not even embedded.
        topic_kind: only topics of this kind are found, and no evidence; None finds everything.
    """

    sessions: bool
    search: bool
    topic_kind: str | None = None


ROUTES: Mapping[Policy, Route] = MappingProxyType(
    {
        "auto": Route(sessions=True, search=True),
        "task": Route(sessions=True, search=False),
        "workspace": Route(sessions=False, search=True, topic_kind=Resource.topic_kind()),
    }
)
