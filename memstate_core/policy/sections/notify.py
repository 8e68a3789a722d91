"""The section `[notify]` of `memstate.toml`: who is notified of nights that fail, warn or recover.

Secrets are never settings: `webhook_secret_env` and `smtp_password_env` name the environment variables that hold them.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from memstate_core.policy.loading import ARRAY, Section, form
from memstate_core.policy.sections.extractor import VariableName

_ADDRESS = r"^[^\s@<>,;:\"\x00-\x1f\x7f]+@[^\s@<>,;:\"\x00-\x1f\x7f]+$"
_IS_ADDRESS = form("an e-mail address such as oncall@example.org")
Address = Annotated[str, Field(pattern=_ADDRESS), _IS_ADDRESS]


class NotifySettings(Section):
    """Where notifications of nights go: a webhook, e-mail, or both.

    Without `webhook_url` and `smtp_host` nothing is sent.
    """

    webhook_url: str = ""
    """Address that notifications are posted to, `http` or `https`, without credentials; redirects are not followed.
    Empty: no webhook."""
    webhook_secret_env: VariableName = ""
    """Name of the environment variable that holds the secret with which notifications are signed."""
    smtp_host: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:_-]*$"), form("a host such as mail.example.org")] = ""
    """Mail server. Empty: no e-mail."""
    smtp_port: Annotated[int, Field(ge=1, le=65_535)] = 587
    """Port of the mail server."""
    smtp_starttls: bool = True
    """Encrypt the connection to the mail server with STARTTLS, with a certificate that this machine trusts. Without it
    no password is sent."""
    smtp_user: str = ""
    """User at the mail server; empty for one that asks for none."""
    smtp_password_env: VariableName = ""
    """Name of the environment variable that holds the user's password."""
    mail_from: Annotated[str, Field(pattern=rf"^$|{_ADDRESS}"), _IS_ADDRESS] = ""
    """Sender of e-mail."""
    mail_to: Annotated[tuple[Address, ...], ARRAY] = ()
    """Receivers of e-mail."""
    timeout_seconds: Annotated[float, Field(gt=0, le=10)] = 5.0
    """Seconds until an attempt without an answer is given up. There are three; all of a notification ends after 25
    seconds."""

    @property
    def configured(self) -> bool:
        """Whether notifications are sent."""
        return bool(self.webhook_url or self.smtp_host)

    @property
    def webhook_host(self) -> str:
        """Scheme and host of the webhook: all of its address that may be shown, since a path can be a secret."""
        parts = urlsplit(self.webhook_url)
        return f"{parts.scheme}://{parts.hostname}"

    @field_validator("webhook_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if not url:
            return url
        if not url.isascii() or re.search(r"[\s\x00-\x1f\x7f]", url) or not _is_web_address(urlsplit(url)):
            raise ValueError("expected an http or https URL in ASCII, with a host, without credentials or fragment")
        return url

    @model_validator(mode="after")
    def _channels_are_whole(self) -> NotifySettings:
        if bool(self.webhook_url) != bool(self.webhook_secret_env):
            raise ValueError("webhook_url and webhook_secret_env are set together: notifications are signed")
        if self.smtp_host and not (self.mail_from and self.mail_to):
            raise ValueError("smtp_host needs mail_from and mail_to")
        if bool(self.smtp_user) != bool(self.smtp_password_env):
            raise ValueError("smtp_user and smtp_password_env are set together")
        if self.smtp_user and not self.smtp_starttls:
            raise ValueError("smtp_user needs smtp_starttls, since a password is sent encrypted only")
        return self


def _is_web_address(parts: SplitResult) -> bool:
    try:
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_bare = parts.username is None and parts.password is None and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port and is_bare
