"""Session states: what a session of an agent is about and how far it is, so that the next one can go on from there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from memstate_core.model.forms.form import Fault, Form
from memstate_core.model.parts import FieldType

STATUS, GOAL, SUMMARY, WORKING_SET = "status", "current_goal", "summary", "working_set"
"""The fields of such a topic; its title is the session's id, its summary the summary."""

ACTIVE: Final = "active"
"""The status of a session that nobody blocked or completed, also of one that never stated a status."""

_KEPT = "if absent it stays as it was"


class SessionState(Form, kw_only=True, tag="session_state"):
    """What a session is about and how far it is; context packs of its scope contain it while it is active."""

    NOUN: ClassVar[str] = "session state"
    STATED: ClassVar[Mapping[str, FieldType]] = MappingProxyType(
        {STATUS: "string", GOAL: "string", SUMMARY: "string", WORKING_SET: "list"}
    )
    LIMITS: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"session_id": 1_024, GOAL: 2_000, SUMMARY: 20_000, WORKING_SET: 200, f"{WORKING_SET}[]": 1_024}
    )

    session_id: Annotated[
        str, Meta(description="the session; also that of the record, so that erasing the session erases its state")
    ]
    status: Annotated[
        Literal["active", "blocked", "complete"] | None, Meta(description=f"how it stands; {_KEPT}, at first active")
    ] = None
    current_goal: Annotated[str | None, Meta(description=f"what it works on; {_KEPT}")] = None
    summary: Annotated[str | None, Meta(description=f"what happened so far; {_KEPT}")] = None
    working_set: Annotated[
        list[str] | None, Meta(description=f"files, tickets and the like that it works with; {_KEPT}")
    ] = None

    def natural_key(self) -> str:
        """The session's id."""
        return self.session_id

    def topic_title(self) -> str:
        """The session's id."""
        return self.session_id

    def topic_summary(self) -> str | None:
        """The goal and the summary, as far as they are stated together."""
        return "\n".join(filter(None, (self.current_goal, self.summary))) or None

    def own_session(self) -> str:
        """The session's id."""
        return self.session_id

    def faults(self) -> Iterator[Fault]:
        """A blank id, or nothing said about the session."""
        yield from self.blank("session_id")
        if all(getattr(self, name) is None for name in self.STATED):
            yield Fault("session_id", "stands alone", f"{', '.join(self.STATED)} beside it", missing=True)
