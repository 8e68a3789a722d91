"""Whether noted branches and commits exist in the repositories that the settings name.

git reads the repository in an environment of its own: no configuration of the user or the system, no prompt, no lazy
fetch, no hook, and a limit of time.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import polars as pl

from memstate_core.night.verification.finding import FAILED, PASSED, UNKNOWN, WARNING, found

BRANCH, COMMIT = "branch", "commit"
"""The names of the two checks."""

_SECONDS = 10.0
_HASH = re.compile(r"[0-9a-fA-F]{4,64}").fullmatch
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0", "GIT_ALLOW_PROTOCOL": "none", "GIT_CEILING_DIRECTORIES": os.sep, "LC_ALL": "C",
}  # fmt: skip
Result = tuple[str, str]


def check_commits(noted: pl.DataFrame, repositories: Mapping[str, str], seconds: float = _SECONDS) -> pl.DataFrame:
    """Findings about the branches and commits that evidence notes (columns FINDINGS); none without repositories.

    Args:
        noted: columns NOTED.
        repositories: working copies by the workspace that evidence notes.
        seconds: how long git may take for one answer.
    """
    rows = noted.filter(pl.col("workspace").is_in(list(repositories)))

    @cache
    def exists(workspace: str, check: str, name: str) -> Result:
        return _exists(Path(repositories[workspace]), check, name, seconds)

    findings = []
    for check in (BRANCH, COMMIT):
        mine = rows.filter(pl.col(check).is_not_null())
        names = mine.select("workspace", check).iter_rows()
        findings.append(found(mine, check, (exists(workspace, check, name) for workspace, name in names)))
    return pl.concat(findings)


def _exists(repository: Path, check: str, name: str, seconds: float) -> Result:
    if not repository.is_dir():
        return UNKNOWN, f"{repository}, which [verification] repositories names, is not there"
    if check == COMMIT:
        if not _HASH(name):
            return WARNING, f"{name!r} is no hash of a commit"
        wanted = ["cat-file", "-e", f"{name}^{{commit}}"]
    else:
        wanted = ["show-ref", "--verify", "--quiet", f"refs/heads/{name}"]
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *wanted],
            env=_ENVIRONMENT | {"PATH": os.environ.get("PATH", os.defpath)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return UNKNOWN, f"git took more than {seconds:g} s to look for {check} {name} in {repository}"
    except (OSError, ValueError) as error:
        return UNKNOWN, f"git cannot look for {check} {name}: {error}"
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode == 0:
        return PASSED, f"{check} {name} is in {repository}"
    if "not a git repository" in said or "dubious ownership" in said:
        return UNKNOWN, f"{repository} is no repository that git reads: {said.splitlines()[0]}"
    return FAILED, f"{check} {name} is not in {repository}"
