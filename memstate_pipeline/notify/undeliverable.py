"""Why a notification was not delivered, in words without addresses and credentials."""

from __future__ import annotations

import http.client
import smtplib
import ssl
import urllib.error

from memstate_pipeline.cli.shared.terminal import cut

_REPEATED = (408, 425, 429)
_LONGEST = 200


class Undeliverable(Exception):
    """A channel did not take a notification.

    Args:
        problem: why.
        is_transient: whether another attempt may succeed.
    """

    def __init__(self, problem: str, *, is_transient: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.is_transient = problem, is_transient


def undeliverable(error: Exception) -> Undeliverable:
    """The reason from an error of a library; texts that servers send are left out."""
    if isinstance(error, urllib.error.HTTPError):
        return _of_status(error.code)
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        return undeliverable(error.reason)
    if isinstance(error, smtplib.SMTPResponseException):
        return Undeliverable(f"SMTP {error.smtp_code}", is_transient=400 <= error.smtp_code < 500)
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return Undeliverable("the mail server refused the receivers")
    if isinstance(error, ssl.SSLCertVerificationError):
        return Undeliverable(cut(f"its certificate is not trusted: {error.verify_message}", _LONGEST))
    if isinstance(error, TimeoutError):
        return Undeliverable("no answer in time", is_transient=True)
    problem = getattr(error, "strerror", None) or type(error).__name__
    return Undeliverable(
        cut(str(problem), _LONGEST), is_transient=isinstance(error, (OSError, http.client.HTTPException))
    )


def _of_status(status: int) -> Undeliverable:
    redirect = ", a redirect, which is not followed" if 300 <= status < 400 else ""
    return Undeliverable(f"HTTP {status}{redirect}", is_transient=status >= 500 or status in _REPEATED)
