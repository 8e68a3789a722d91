"""Who asks, and what they may see and do. Values only; how somebody shows who they are is in `guards`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from memstate_core.model.errors import NotAllowed


class Role(IntEnum):
    """What a caller may do; each role may do what the ones before it may."""

    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True)
class Principal:
    """A caller.

    Attributes:
        name: what logs call them.
        scopes: which scopes they see; None means every scope of the store.
        role: what they may do.
    """

    name: str
    scopes: frozenset[str] | None
    role: Role

    def sees(self, scope: str) -> bool:
        """Whether they may know what a scope holds, and that it exists."""
        return self.scopes is None or scope in self.scopes

    def narrowed(self, asked: Iterable[str] | None) -> tuple[str, ...] | None:
        """Where a question of theirs is answered from; None means every scope of the store.

        A scope that they may not see is passed over like one that nobody ever wrote to: the answer is empty.

        Args:
            asked: the scopes that the question names; None where it names none.
        """
        if asked is None:
            return None if self.scopes is None else tuple(sorted(self.scopes))
        return tuple(scope for scope in asked if self.sees(scope))

    @property
    def sees_all(self) -> bool:
        """Whether they see every scope, and so may know what is counted over the whole store."""
        return self.scopes is None

    def may(self, role: Role) -> bool:
        """Whether they may do what takes this role."""
        return self.role >= role

    def require(self, role: Role) -> None:
        """Stops who may not do what takes this role.

        Raises:
            NotAllowed: they may do less.
        """
        if not self.may(role):
            mine, wanted = self.role.name.lower(), role.name.lower()
            raise NotAllowed(f"a key for {mine}", f"one for {wanted}")

    def require_all(self) -> None:
        """Stops who may not know what is counted over the whole store.

        Raises:
            NotAllowed: they see some scopes only.
        """
        if not self.sees_all:
            raise NotAllowed("a key for some scopes", "one for every scope, since this tells of the whole store")


OWNER = Principal("owner", None, Role.ADMIN)
"""Who asks where no key is needed, or shows the key that the environment sets."""
ANONYMOUS = Principal("anonymous", frozenset(), Role.READ)
"""Who showed no key where there are keys, on the few paths that are open to everybody."""
