"""The authenticated caller: scopes and role. Plain values; authentication is in `memstate_core.serve.http`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from memstate_core.model.errors import NotAllowed


class Role(IntEnum):
    """What a caller may do; each role includes the previous ones."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True)
class Principal:
    """A caller.

    Attributes:
        name: the name in logs.
        scopes: the scopes they may read; None for all.
        role: what they may do.
    """

    name: str
    scopes: frozenset[str] | None
    role: Role

    def sees(self, scope: str) -> bool:
        """Whether they may read a scope, and know that it exists."""
        return self.scopes is None or scope in self.scopes

    def narrowed(self, asked: Iterable[str] | None) -> tuple[str, ...] | None:
        """The scopes that a question of theirs searches; None for all.

        A scope that they may not read is treated like an empty one.

        Args:
            asked: the scopes that the question names; None if it names none.
        """
        if asked is None:
            return None if self.scopes is None else tuple(sorted(self.scopes))
        return tuple(scope for scope in asked if self.sees(scope))

    @property
    def sees_all(self) -> bool:
        """Whether they may read every scope, and hence figures about the whole store."""
        return self.scopes is None

    def may(self, role: Role) -> bool:
        """Whether they have this role or a higher one."""
        return self.role >= role

    def require(self, role: Role) -> None:
        """Requires a role.

        Raises:
            NotAllowed: their role is lower.
        """
        if not self.may(role):
            mine, wanted = self.role.name.lower(), role.name.lower()
            raise NotAllowed(f"a key for {mine}", f"one for {wanted}")

    def require_all(self) -> None:
        """Requires access to all scopes.

        Raises:
            NotAllowed: they may read some scopes only.
        """
        if not self.sees_all:
            raise NotAllowed("a key for some scopes", "one for every scope, since this describes the whole store")


OWNER = Principal("owner", None, Role.ADMIN)
"""The caller if no key is needed, or with the environment's key."""
ANONYMOUS = Principal("anonymous", frozenset(), Role.READ)
"""A caller without a key, on the few paths that need none."""
