"""Posts a notification to a webhook, signed with a shared secret."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import urllib.error
import urllib.request
from datetime import datetime
from typing import Any

from memstate_core import __version__
from memstate_core.policy.sections.notify import NotifySettings
from memstate_pipeline.notify.undeliverable import undeliverable

SIGNATURE_HEADER = "X-Memstate-Signature"


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header: seconds since 1970, and the HMAC-SHA256 of these, a full stop and the body."""
    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def post(settings: NotifySettings, secret: str, body: bytes, now: datetime) -> None:
    """Posts a body once.

    Raises:
        Undeliverable: the server cannot be reached, or answered with another status than 2xx.
    """
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"memstate/{__version__}",
        SIGNATURE_HEADER: signature(secret, int(now.timestamp()), body),
    }
    request = urllib.request.Request(settings.webhook_url, data=body, headers=headers, method="POST")
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=settings.timeout_seconds):
            pass
    except urllib.error.HTTPError as error:
        error.close()
        raise undeliverable(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise undeliverable(error) from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats redirects as errors: the signed document goes to the configured address alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
