"""The section `[ui]` of `memstate.toml`: what the pages of Dagster name and link to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memstate_core.policy.loading import ARRAY, Section, form

_OWNER = r"^(team:[A-Za-z0-9_-]+|[^\s@<>,;:\"\x00-\x1f\x7f]+@[^\s@<>,;:\"\x00-\x1f\x7f]+\.[A-Za-z]{2,})$"
Owner = Annotated[str, Field(pattern=_OWNER), form("an e-mail address, or team: and a name such as team:memory")]


class UiSettings(Section):
    """Owners and links in the Dagster UI."""

    owners: Annotated[tuple[Owner, ...], ARRAY] = ("team:memstate",)
    """Who answers for the assets: e-mail addresses, or `team:` and a name of letters, digits, `_` and `-`."""
    api_url: Annotated[
        str,
        Field(pattern=r"^(https?://[^\s?#@()<>|`\\]+[^\s?#@()<>|`\\/])?$"),
        form("a URL such as http://127.0.0.1:8420, without credentials, options or a slash at its end"),
    ] = "http://127.0.0.1:8420"
    """Where `memstate serve` of this store answers a browser, for links to report pages and topics. Empty: no links,
    only the paths of pages and the ids of topics."""
