"""Files of Compose merged as `docker compose --file A --file B` merges them, by the rules of its specification.

Mappings are merged, lists are joined, a value replaces another. Of ports and volumes what has the same place in the
container is replaced; a command and the test of a health check are one value each.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import yaml

from memstate_pipeline.deploy.containers import container_files
from memstate_pipeline.deploy.workers import worker_files

ONE_VALUE = {("command",), ("entrypoint",), ("healthcheck", "test")}
"""Lists of a service that are replaced as a whole."""
_SERVICE = 2
"""How many names lead to a service: `services` and its own."""


def merged(*names: str) -> dict[str, Any]:
    """The merged document of some of the files that `memstate init` writes, without extensions."""
    files = container_files() | worker_files()
    documents = [yaml.safe_load(files[name]) for name in names]
    both: dict[str, Any] = reduce(lambda before, after: _merge(before, after, ()), documents)
    return {name: part for name, part in both.items() if not name.startswith("x-")}


def _merge(before: Any, after: Any, path: tuple[str, ...]) -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        shared = {name: _merge(before[name], after[name], (*path, name)) for name in before.keys() & after.keys()}
        return before | after | shared
    if isinstance(before, list) and isinstance(after, list) and path[_SERVICE:] not in ONE_VALUE:
        return list({_place(each, path): each for each in [*before, *after]}.values())
    return before if after is None else after


def _place(each: Any, path: tuple[str, ...]) -> str:
    """What distinguishes an entry of a list from others: of a volume where it is mounted, else all of it."""
    if path[_SERVICE:] == ("volumes",):
        return str(each["target"] if isinstance(each, dict) else each.split(":")[1])
    return str(each)
