"""The section `[verification]` of `memstate.toml`: what the night may look at to verify what memories noted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator

from memstate_core.policy.loading import ARRAY, Section


class VerificationSettings(Section):
    """What the night may look at to verify what memories noted; by default nothing outside the home."""

    roots: Annotated[tuple[str, ...], ARRAY] = ()
    """Folders, as absolute paths, whose files a night may read to compare them with the `contentSha256` that was noted.
    Links that lead out of them are not followed. Empty: no file is read."""
    repositories: dict[str, str] = {}  # noqa: RUF012, pydantic copies it
    """Git repositories by the `workspacePath` that memories note, as absolute paths of working copies. A night looks up
    there whether noted branches and commits exist; it reads references and objects and runs no hook, filter or network
    command. Empty: none."""
    max_file_mib: Annotated[int, Field(ge=1, le=1_048_576)] = 64
    """Largest file that is read for its hash, in MiB; larger ones have the status `unknown`."""

    @field_validator("roots")
    @classmethod
    def _roots(cls, roots: tuple[str, ...]) -> tuple[str, ...]:
        for root in roots:
            _absolute(root)
        return roots

    @field_validator("repositories")
    @classmethod
    def _repositories(cls, repositories: dict[str, str]) -> dict[str, str]:
        for path in repositories.values():
            _absolute(path)
        return repositories


def _absolute(path: str) -> None:
    if not Path(path).is_absolute():
        raise ValueError(f"{path!r} is not an absolute path")
