"""Slack mark-up as plain text: user mentions, channels and links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memstate_core.ingest.formats.shared.message import plain_text, text_or_none

_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
_ATTACHED = ("pretext", "title", "text")


class Names:
    """The names of a workspace's users and channels.

    Attributes:
        users: names by id.
        channels: names by id.
    """

    def __init__(self) -> None:
        self.users: dict[str, str] = {}
        self.channels: dict[str, str] = {}

    def plain(self, text: str) -> str:
        """A text without mark-up."""
        if "<" in text:
            text = _MARK.sub(self._mark, text)
        if "&" in text:
            for entity, character in _ENTITIES:
                text = text.replace(entity, character)
        return text

    def _mark(self, found: re.Match[str]) -> str:
        sign, target, label = found[1], found[2], found[3]
        if sign == "@":
            return "@" + (self.users.get(target) or label or target)
        if sign == "#":
            return "#" + (label or self.channels.get(target) or target)
        if sign == "!":
            return label or "@" + target.partition("^")[0]
        bare = target.removeprefix("mailto:").removeprefix("tel:")
        return bare if label in (None, "", bare, target) else f"{label} ({bare})"


def user_name(user: Mapping[str, Any]) -> str | None:
    """The name of a user: the display name, else the full name, else the account name."""
    profile = user.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    names = (profile.get("display_name"), user.get("display_name"), profile.get("real_name"), user.get("real_name"))
    return next(filter(None, map(text_or_none, (*names, user.get("name")))), None)


def raw_text(message: Mapping[str, Any]) -> str:
    """The text of a message with its mark-up: its own text, attachments of apps, the names of files."""
    attached = message.get("attachments")
    files = message.get("files") or [message.get("file")]
    texts = [plain_text(message.get("text"))]
    if not texts[0].strip() and isinstance(attached, list):
        texts += [_attachment(item) for item in attached if isinstance(item, dict)]
    texts += [_file(item) for item in files if isinstance(item, dict)] if isinstance(files, list) else []
    return "\n".join(text for text in texts if text.strip())


def _attachment(item: Mapping[str, Any]) -> str:
    said = [text for key in _ATTACHED if (text := text_or_none(item.get(key)))]
    return "\n".join(said) or text_or_none(item.get("fallback")) or ""


def _file(item: Mapping[str, Any]) -> str:
    name = text_or_none(item.get("title")) or text_or_none(item.get("name"))
    return f"[file: {name}]" if name else ""
