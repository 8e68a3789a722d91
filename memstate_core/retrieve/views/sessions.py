"""The active session states of some scopes, as they hold now or held at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from memstate_core.model.forms.session_state import ACTIVE, GOAL, STATUS, SUMMARY, WORKING_SET, SessionState
from memstate_core.retrieve.reader import SnapshotReader
from memstate_core.retrieve.views.form_topics import FormTopic, form_topics

Session = dict[str, Any]


def active_sessions(
    readers: Sequence[SnapshotReader], scopes: Iterable[str], as_of: datetime | None = None
) -> list[Session]:
    """The session states with the status active in these scopes, the ones updated last first.

    Args:
        readers: the open snapshots of the store's shards.
        scopes: the scopes.
        as_of: a moment; the states as known then. None for the present.

    Returns:
        `topic_id`, `scope`, `session_id`, `status`, `current_goal`, `summary`, `working_set`, `updated_at` (since when
        the newest of these holds) and `evidence_ids` (of all of them) of each, ready for JSON.
    """
    found = [_session(topic) for topic in form_topics(readers, scopes, SessionState.topic_kind(), as_of)]
    active = [session for session in found if session["status"] == ACTIVE]
    named = sorted(active, key=lambda session: (session["scope"], session["session_id"], session["topic_id"]))
    return sorted(named, key=lambda session: session["updated_at"] or "", reverse=True)


def _session(topic: FormTopic) -> Session:
    return {
        "topic_id": topic.topic_id,
        "scope": topic.scope,
        "session_id": topic.title,
        "status": topic.value(STATUS, ACTIVE),
        "current_goal": topic.value(GOAL),
        "summary": topic.value(SUMMARY),
        "working_set": topic.value(WORKING_SET, []),
    } | topic.cited(STATUS, GOAL, SUMMARY, WORKING_SET)
