"""The code location of runs that the command line begins, so that the UI lists them like its own.

Dagster shows a run under its job, its partition and on the timeline by the code location that is recorded with it, and
records none for runs in the caller's process. This module is the one that names the classes of that record, which
Dagster does not export.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

LOCATION = "memstate_pipeline.definitions"
"""The code location, as `workspace.yaml` and `memstate ui` name it."""

_REPOSITORY = "__repository__"
"""Dagster's name for definitions without a repository of their own."""


def job_origin(job: str) -> RemoteJobOrigin:
    """The origin of a job of this project."""
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=LOCATION)
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target, LOCATION)
    return RemoteRepositoryOrigin(location, _REPOSITORY).get_job_origin(job)


@contextmanager
def recorded_origin(instance: dg.DagsterInstance) -> Iterator[None]:
    """Within it, runs that the instance creates in this process are recorded with the origin of their job."""
    create = instance.create_run_for_job

    def created(job_def: dg.JobDefinition, **given: Any) -> dg.DagsterRun:
        return create(job_def, remote_job_origin=job_origin(job_def.name), **given)

    vars(instance)[create.__name__] = created
    try:
        yield
    finally:
        del vars(instance)[create.__name__]
