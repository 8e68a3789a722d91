"""The base of all answer types and the two markers that say when a key is sent.

One definition serves both sides. The server derives its response schema from it; the client decodes with it and is
more tolerant, because it may talk to an older server:

| declaration | this version's server | the client |
|---|---|---|
| `key: T` | always sends it | requires it |
| `key: T = default` | always sends it | takes the default where an older server omits it |
| `key: NullIfOlder[T] = None` | always sends a T | None means that an older server omitted it |
| `key: Sometimes[T] = None` | sends it only where it applies | None where it is absent |

Unknown keys are ignored, so that a newer server can add some.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta, Struct

T = TypeVar("T")
SOMETIMES = "sent only where it applies"
NEVER_NULL = "sent by every current server and never null"

Sometimes = Annotated[T | None, Meta(extra={SOMETIMES: True})]
NullIfOlder = Annotated[T | None, Meta(extra={NEVER_NULL: True})]


class Answer(Struct, frozen=True):
    """The base of all answer types: immutable; ignores unknown keys."""
