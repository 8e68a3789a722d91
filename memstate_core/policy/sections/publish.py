"""The section `[publish]` of `memstate.toml`: where snapshots go for replicas on other machines."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memstate_core.policy.loading import Section, form
from memstate_core.policy.sections.store import STORE_URL, STORE_URL_FORM


class PublishSettings(Section):
    """Where each night publishes its snapshot for replicas, beside this home; by default nowhere."""

    url: Annotated[str, Field(pattern=rf"^$|^{STORE_URL}$"), form(STORE_URL_FORM)] = ""
    """Address that nights, corrections by `memstate rollback` and erasures publish to: s3://, gs://, az:// or file://.
    Credentials come from the environment. Empty: nowhere."""
    writer_url: Annotated[
        str,
        Field(pattern=r"^$|^https?://[^@?#]+$"),
        form("a URL such as https://memory.example.org:8420, without credentials or options"),
    ] = ""
    """Address of the server that takes writes, which replicas name to those who send them one. Empty: unknown."""
    accept_writes: bool = False
    """Whether nights fetch what replicas accepted (`memstate serve --replica-of URL --accept-writes`) from the URL.
    Replicas learn it with the next publication. What was accepted before it is turned off is fetched all the same."""
