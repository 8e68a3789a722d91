"""The export of a Slack workspace: a zip of `users.json`, `channels.json` and a file for each day and channel.

The observation id is `slack/<channel>/<ts>`; an edited message has `/edited-<ts>` after it, so both versions are
evidence if both were exported. A thread is one session, `slack/<channel>/<thread_ts>`, with the message that it
answers; messages outside threads form one session a day, `slack/<channel>/<day>` (UTC). Users and channels appear by
name but are identified by id: renaming a user makes no message new. Joins and leaves are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memstate_core.ingest.containers.source import Member, Source
from memstate_core.ingest.formats.shared.base import Reader, Reading
from memstate_core.ingest.formats.shared.json_documents import Document, document_of, elements
from memstate_core.ingest.formats.shared.message import (
    ASSISTANT,
    SYSTEM,
    USER,
    Turn,
    moment,
    refused_row,
    text_or_none,
    turn_row,
)
from memstate_core.ingest.formats.shared.slack_text import Names, raw_text, user_name
from memstate_core.ingest.notes import Notes
from memstate_core.ingest.raw_rows import RawRow
from memstate_core.ingest.reasons import Reason, Rejection
from memstate_core.ingest.validation.values import canonical

_DAY = re.compile(r"(?:^|/)([^/]+)/\d{4}-\d\d-\d\d\.json$")
_LISTS = re.compile(r"(?:^|/)(?:channels|groups|mpims|dms)\.json$")
_USERS = re.compile(r"(?:^|/)(?:org_)?users\.json$")
_TS = re.compile(r"\d{1,11}(?:\.\d{1,6})?")
_LEFT_OUT = {
    *("channel_join", "channel_leave", "group_join", "group_leave", "bot_add", "bot_remove", "pinned_item"),
    *("tombstone", "message_replied", "reminder_add", "channel_convert_to_private", "joiner_notification"),
}
_EVENTS = {"channel_topic", "channel_purpose", "channel_name", "channel_archive", "channel_unarchive"}
_EVENTS |= {name.replace("channel", "group") for name in _EVENTS}


def _recognises(source: Source) -> bool:
    if source.archive is None:
        return False
    return any(_LISTS.search(name) or _DAY.search(name) for name in source.archive.members)


def _rows(source: Source, reading: Reading) -> Iterator[RawRow]:
    names = Names()
    for member in source.matching(_USERS):
        yield from member.guarded(_named(member, names, names.users, reading))
    for member in source.matching(_LISTS):
        yield from member.guarded(_named(member, names, names.channels, reading))
    channels = {name: channel for channel, name in names.channels.items()}
    for member in source.matching(_DAY):
        folder = _folder(member)
        room = _Room(channels.get(folder, folder), names.channels.get(folder, folder), names, reading.notes)
        yield from member.guarded(_day(member, room, reading))


def _folder(member: Member) -> str:
    found = _DAY.search(member.name or "")
    return found[1] if found else ""


def _documents(member: Member, reading: Reading) -> Iterator[tuple[int, Document] | RawRow]:
    for row in elements(member.blocks(), reading.longest):
        if row.sha256 is not None:
            yield RawRow(row.line, row.raw, row.length, row.sha256, member.name)
            continue
        try:
            yield row.line, document_of(row.raw)
        except Rejection as refused:
            yield refused_row(row.line, member.name, row.raw, refused.reason, refused.detail)


def _named(member: Member, names: Names, learned: dict[str, str], reading: Reading) -> Iterator[RawRow]:
    """Collects names by id; a conversation without a name is named after its members."""
    for found in _documents(member, reading):
        if isinstance(found, RawRow):
            yield found
            continue
        item = found[1]
        members = item.get("members")
        people = [names.users.get(str(user), str(user)) for user in members] if isinstance(members, list) else []
        name = user_name(item) or ", ".join(people)
        if text_or_none(item.get("id")) and name:
            learned[item["id"]] = name


def _day(member: Member, room: _Room, reading: Reading) -> Iterator[RawRow]:
    for found in _documents(member, reading):
        if isinstance(found, RawRow):
            yield found
            continue
        line, message = found
        try:
            parsed = room.turn(message)
        except Rejection as refused:
            yield refused_row(line, member.name, canonical(message), refused.reason, refused.detail)
            continue
        if parsed is not None:
            yield turn_row(line, member.name, *parsed)


class _Room:
    """One channel, private group or conversation."""

    def __init__(self, channel: str, name: str, names: Names, notes: Notes) -> None:
        self._channel, self._name = channel, name
        self._names, self._notes = names, notes

    def turn(self, message: Document) -> tuple[Turn, str] | None:
        """A message and its original text; None for one that is left out.

        Raises:
            Rejection: it has no `ts`.
        """
        inner = message.get("message")
        message = inner if message.get("subtype") == "message_changed" and isinstance(inner, dict) else message
        ts, subtype, written = message.get("ts"), message.get("subtype"), raw_text(message)
        if subtype in _LEFT_OUT or not written:
            self._notes.left_out(str(subtype) if subtype in _LEFT_OUT else "message without text")
            return None
        if not isinstance(ts, str) or not _TS.fullmatch(ts):
            raise Rejection(Reason.BAD_TIME, f"$.ts is {ts!r}, expected a time such as 1700000000.000100")
        return self._turn(message, ts, subtype, written), written

    def _turn(self, message: Document, ts: str, subtype: Any, written: str) -> Turn:
        room, thread, edited = f"slack/{self._channel}", message.get("thread_ts"), _edited(message)
        said_at = moment(float(ts)) or ts
        return {
            "observation_id": f"{room}/{ts}" + f"/edited-{edited}" * bool(edited),
            "kind": SYSTEM if subtype in _EVENTS else ASSISTANT if subtype == "bot_message" else USER,
            "actor": self._actor(message),
            "session_id": f"{room}/{thread if isinstance(thread, str) and thread else said_at[:10]}",
            "observed_at": said_at,
            "source_uri": f"slack:{self._name}",
            "text": self._names.plain(written),
            "edited_at": moment(float(edited)) if edited else None,
        }

    def _actor(self, message: Document) -> str | None:
        user, profile = message.get("user"), message.get("user_profile")
        known = self._names.users.get(user) if isinstance(user, str) else None
        shown = user_name(profile) if isinstance(profile, dict) else None
        bot = message.get("bot_profile")
        program = text_or_none(bot.get("name")) if isinstance(bot, dict) else None
        fallbacks = (text_or_none(message.get(key)) for key in ("username", "user", "bot_id"))
        return known or shown or program or next(filter(None, fallbacks), None)


def _edited(message: Document) -> str | None:
    edited = message.get("edited")
    ts = edited.get("ts") if isinstance(edited, dict) else None
    return ts if isinstance(ts, str) and _TS.fullmatch(ts) else None


READER = Reader(
    "a Slack export: a zip of users.json, channels.json and <channel>/YYYY-MM-DD.json files", _recognises, _rows
)
