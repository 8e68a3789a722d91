"""Slack mark-up as plain text: user mentions, channels and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memstate_core.ingest.formats.shared.message import plain_text, text_or_none

_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
_ATTACHED = ("pretext", "title", "text")
_PARAGRAPHS = {"rich_text_section", "rich_text_quote", "rich_text_preformatted"}
"""Blocks whose elements are one text."""


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
    """The text of a message with its mark-up, else its blocks and attachments of apps; then the names of files."""
    files = message.get("files") or [message.get("file")]
    texts = [plain_text(message.get("text"))]
    if not texts[0].strip():
        texts = [_in_blocks(message), *map(_attachment, _objects(message.get("attachments")))]
    texts += map(_file, _objects(files))
    return "\n".join(text for text in texts if text.strip())


def _objects(found: Any) -> list[dict[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _attachment(item: Mapping[str, Any]) -> str:
    said = [text for key in _ATTACHED if (text := text_or_none(item.get(key)))]
    return "\n".join(said) or _in_blocks(item) or text_or_none(item.get("fallback")) or ""


def _in_blocks(message: Mapping[str, Any]) -> str:
    """What the blocks of a message or an attachment say, with its mark-up."""
    blocks = message.get("blocks")
    return "\n".join(line for line in _lines(blocks) if line.strip()) if isinstance(blocks, list) else ""


def _lines(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif isinstance(found, list):
        for each in found:
            yield from _lines(each)
    elif isinstance(found, dict) and found.get("type") in _PARAGRAPHS:
        yield "".join(map(_inline, _objects(found.get("elements"))))
    elif isinstance(found, dict) and found.get("type") != "actions":
        yield from _lines([found.get(key) for key in ("text", "fields", "elements")])


def _inline(element: Mapping[str, Any]) -> str:
    """An element of a paragraph as mark-up; its text is written as it is read, other than in mark-up."""
    written = element.get("text")
    text = written if isinstance(written, str) else ""
    for entity, character in reversed(_ENTITIES):
        text = text.replace(character, entity)
    match element:
        case {"type": "link", "url": str(target)}:
            return f"<{target}|{text}>" if text else f"<{target}>"
        case {"type": "user", "user_id": str(target)}:
            return f"<@{target}>"
        case {"type": "channel", "channel_id": str(target)}:
            return f"<#{target}>"
        case {"type": "broadcast", "range": str(target)}:
            return f"<!{target}>"
        case {"type": "emoji", "name": str(target)}:
            return f":{target}:"
    return text


def _file(item: Mapping[str, Any]) -> str:
    name = text_or_none(item.get("title")) or text_or_none(item.get("name"))
    return f"[file: {name}]" if name else ""
