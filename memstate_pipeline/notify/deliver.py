"""Delivers a document over every configured channel, in bounded time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from memstate_core.policy.sections.notify import NotifySettings
from memstate_pipeline.notify import mail, webhook
from memstate_pipeline.notify.message import encoded
from memstate_pipeline.notify.undeliverable import Undeliverable

ATTEMPTS = 3
DEADLINE_SECONDS = 25.0
"""All channels together: a sensor of Dagster has a minute, and the end of one fault may meet another."""
WEBHOOK, MAIL = "webhook", "e-mail"
_log = logging.getLogger("memstate.notify")


@dataclass(frozen=True)
class Surroundings:
    """What delivery takes from its surroundings.

    Attributes:
        environ: the variables that hold the secrets.
        sleep: waits between attempts.
    """

    environ: Mapping[str, str]
    sleep: Callable[[float], None] = time.sleep


def channels(settings: NotifySettings) -> dict[str, str]:
    """The configured channels, each with where it leads, without paths and users."""
    mail_server = {MAIL: f"{settings.smtp_host}:{settings.smtp_port}"} if settings.smtp_host else {}
    return ({WEBHOOK: settings.webhook_host} if settings.webhook_url else {}) | mail_server


def missing_secrets(settings: NotifySettings, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that a channel needs and that are not set, by channel."""
    needed = {WEBHOOK: settings.webhook_secret_env, MAIL: settings.smtp_password_env}
    return {channel: name for channel, name in needed.items() if name and not environ.get(name)}


def deliver(
    settings: NotifySettings, document: dict[str, Any], now: datetime, given: Surroundings
) -> dict[str, str | None]:
    """Delivers a document over every channel, with a few attempts each; never fails.

    Returns:
        For each channel None if it took the document, else why not.
    """
    results: dict[str, str | None] = dict.fromkeys(channels(settings), f"no answer within {DEADLINE_SECONDS:.0f} s")

    def attempt(channel: str) -> None:
        results[channel] = _delivered(channel, settings, document, now, given)

    # A server that answers byte by byte outlasts every timeout of a socket, so the threads are left behind.
    threads = [threading.Thread(target=attempt, args=(channel,), daemon=True) for channel in results]
    for thread in threads:
        thread.start()
    until = time.monotonic() + DEADLINE_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    found = dict(results)
    for channel, problem in found.items():
        if problem is not None:
            _log.warning("notification %s was not delivered by %s: %s", document["event"], channel, problem)
    return found


def _delivered(
    channel: str, settings: NotifySettings, document: dict[str, Any], now: datetime, given: Surroundings
) -> str | None:
    missing = missing_secrets(settings, given.environ).get(channel)
    if missing is not None:
        return f"environment variable {missing} is not set"
    attempts = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(),
        retry=retry_if_exception(lambda error: isinstance(error, Undeliverable) and error.is_transient),
        sleep=given.sleep,
        reraise=True,
    )
    try:
        attempts(_send, channel, settings, document, now, given.environ)
    except Undeliverable as error:
        return error.problem
    except Exception as error:  # noqa: BLE001 (of a library that met something unforeseen; a night must not fail of it)
        return type(error).__name__
    return None


def _send(
    channel: str, settings: NotifySettings, document: dict[str, Any], now: datetime, environ: Mapping[str, str]
) -> None:
    if channel == WEBHOOK:
        webhook.post(settings, environ[settings.webhook_secret_env], encoded(document), now)
    else:
        mail.send(settings, environ.get(settings.smtp_password_env, ""), document, now)
