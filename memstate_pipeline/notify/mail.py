"""Sends a notification as e-mail."""

from __future__ import annotations

import smtplib
import ssl
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from memstate_core.policy.sections.notify import NotifySettings
from memstate_pipeline.notify.message import subject, text
from memstate_pipeline.notify.undeliverable import Undeliverable, undeliverable


def send(settings: NotifySettings, password: str, document: dict[str, Any], now: datetime) -> None:
    """Sends a document once.

    Raises:
        Undeliverable: the server cannot be reached, or did not take the message for all receivers.
    """
    try:
        refused = _send(settings, password, _message(settings, document, now))
    except (OSError, ValueError) as error:
        raise undeliverable(error) from None
    if refused:
        raise Undeliverable(f"the mail server refused {refused} of {len(settings.mail_to)} receivers")


def _send(settings: NotifySettings, password: str, message: EmailMessage) -> int:
    """Sends a message; returns how many receivers were refused, if not all were."""
    with smtplib.SMTP(settings.smtp_host, settings.smtp_port, timeout=settings.timeout_seconds) as server:
        if settings.smtp_starttls:
            server.starttls(context=ssl.create_default_context())
        if settings.smtp_user:
            server.login(settings.smtp_user, password)
        return len(server.send_message(message))


def _message(settings: NotifySettings, document: dict[str, Any], now: datetime) -> EmailMessage:
    message = EmailMessage()
    message["Subject"] = subject(document)
    message["From"] = settings.mail_from
    message["To"] = ", ".join(settings.mail_to)
    message["Date"] = format_datetime(now)
    message.set_content(text(document))
    return message
