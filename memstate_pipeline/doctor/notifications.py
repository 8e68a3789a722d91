"""The examination of notifications: whether they can be sent, and whether the last ones were."""

from __future__ import annotations

import os
from collections.abc import Mapping

from memstate_core.run.store import Store
from memstate_pipeline.doctor.finding import Finding
from memstate_pipeline.notify.deliver import channels, missing_secrets
from memstate_pipeline.notify.history import read_known

_RETRY = "`memstate notify --test` tries again"


def notifications(store: Store, environ: Mapping[str, str] = os.environ) -> Finding:
    """Whether the secrets of every channel are set, and whether it took the last notification."""
    settings = store.settings.notify
    if not settings.configured:
        return Finding("notifications", True, "none configured; section [notify] of memstate.toml")
    found = channels(settings)
    missing = [
        f"{name}: environment variable {key} is not set" for name, key in missing_secrets(settings, environ).items()
    ]
    undelivered = [
        f"{name} at {found[name]} did not take {entry.event} of {entry.at}: {entry.problem}"
        for name, entry in read_known(store.home).undelivered.items()
        if name in found
    ]
    if missing or undelivered:
        return Finding("notifications", False, "; ".join([*missing, *undelivered, _RETRY]))
    return Finding("notifications", True, ", ".join(f"{name} at {where}" for name, where in found.items()))
