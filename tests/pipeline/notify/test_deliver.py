"""Documents reach real servers, signed; failures are repeated where that helps, and named without secrets."""

from __future__ import annotations

import hashlib
import hmac
import logging
import socket
import ssl
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult

from memstate_core.policy.sections.notify import NotifySettings
from memstate_pipeline.notify import deliver as delivery
from memstate_pipeline.notify import message
from memstate_pipeline.notify.deliver import Surroundings, deliver
from tests.pipeline.notify.servers import Hook, Post, mail_server

NOW = datetime(2026, 4, 6, 2, 0, 7, tzinfo=UTC)
SECRETS = {"HOOK_SECRET": "kept quiet", "MAIL_PASSWORD": "kept quiet, too"}
DOCUMENT = message.test_document("store\x1b[31m", "2026-04-06T02:00:07Z")


def hooked(hook: Hook, **more: Any) -> NotifySettings:
    return NotifySettings(webhook_url=hook.url, webhook_secret_env="HOOK_SECRET", **more)


def mailing(post: Post, **more: Any) -> NotifySettings:
    addresses = {"mail_from": "memstate@example.org", "mail_to": ("ops@example.org", "ines@example.org")}
    return NotifySettings(smtp_host="127.0.0.1", smtp_port=post.port, **{"smtp_starttls": False} | addresses | more)


class Sent:
    """The results of one delivery, and the waits between its attempts."""

    def __init__(self, settings: NotifySettings, environ: dict[str, str] = SECRETS) -> None:
        self.waits: list[float] = []
        self.results = deliver(settings, DOCUMENT, NOW, Surroundings(environ, self.waits.append))


def test_a_webhook_receives_the_document_with_a_signature_that_its_secret_verifies(hook: Hook) -> None:
    assert Sent(hooked(hook)).results == {"webhook": None}
    assert hook.documents == [DOCUMENT]
    assert hook.paths == ["/hooks/s3cret-path?token=s3cret-token"]
    assert hook.headers[0]["Content-Type"] == "application/json"
    timestamp, digest = (part.partition("=")[2] for part in hook.headers[0]["X-Memstate-Signature"].split(","))
    assert int(timestamp) == int(NOW.timestamp())
    signed = timestamp.encode() + b"." + hook.bodies[0]
    assert digest == hmac.new(b"kept quiet", signed, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("answers", "problem", "requests"),
    [
        ([503, 429], None, 3),
        ([500] * 5, "HTTP 500", 3),
        ([404], "HTTP 404", 1),
        ([302], "HTTP 302, a redirect, which is not followed", 1),
        ([307], "HTTP 307, a redirect, which is not followed", 1),
        ([0, 0, 0], "no answer in time", 3),
    ],
)
def test_a_webhook_is_tried_again_where_that_helps(
    hook: Hook, answers: list[int], problem: str | None, requests: int
) -> None:
    hook.answers = answers
    sent = Sent(hooked(hook, timeout_seconds=0.3))
    assert sent.results == {"webhook": problem}
    assert len(hook.bodies) == requests
    assert sent.waits == [1, 2][: requests - 1]
    assert "/elsewhere" not in hook.paths


def test_a_failure_is_logged_without_address_and_secret(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    hook.answers = [404]
    with caplog.at_level(logging.DEBUG):
        Sent(hooked(hook))
        Sent(hooked(hook), {})
    assert "notification test was not delivered by webhook: HTTP 404" in caplog.text
    assert "environment variable HOOK_SECRET is not set" in caplog.text
    assert len(hook.bodies) == 1, "nothing is sent unsigned"
    assert "s3cret" not in caplog.text
    assert "kept quiet" not in caplog.text


def test_a_server_that_never_ends_its_answer_is_left_behind(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    hook.answers = [0]
    monkeypatch.setattr(delivery, "DEADLINE_SECONDS", 0.5)
    began = time.monotonic()
    assert Sent(hooked(hook, timeout_seconds=9)).results == {"webhook": "no answer within 0 s"}
    assert time.monotonic() - began < 5


def test_a_mail_names_the_event_to_every_receiver(post: Post) -> None:
    assert Sent(mailing(post)).results == {"e-mail": None}
    (mail,) = post.messages
    assert post.receivers == [["ops@example.org", "ines@example.org"]]
    assert mail["Subject"] == "memstate: test in store\\x1b[31m"
    assert mail["Date"].datetime == NOW
    assert "somebody ran `memstate notify --test`" in mail.get_content()


def test_a_mail_server_is_tried_again_where_that_helps(post: Post, hook: Hook) -> None:
    post.answers = ["451 later", "451 later"]
    assert Sent(mailing(post)).results == {"e-mail": None}
    post.answers = ["554 kept quiet"]
    assert Sent(mailing(post)).results == {"e-mail": "SMTP 554"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = Post(port=free.getsockname()[1])
        both = mailing(nobody, webhook_url=hook.url, webhook_secret_env="HOOK_SECRET")
        assert Sent(both).results == {"e-mail": "Connection refused", "webhook": None}, "one channel keeps no other"
    assert len(hook.bodies) == 1


def test_a_password_is_sent_over_a_verified_connection_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = _certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    logins: list[bytes] = []

    def authenticate(*given: Any) -> AuthResult:
        logins.append(given[-1].password)
        return AuthResult(success=given[-1].password == b"kept quiet, too", handled=False)

    with mail_server(tls_context=context, authenticator=authenticate, auth_required=True) as post:
        settings = mailing(post, smtp_starttls=True, smtp_user="memstate", smtp_password_env="MAIL_PASSWORD")
        refused = Sent(settings).results["e-mail"]
        assert refused is not None
        assert refused.startswith("its certificate is not trusted: ")
        assert not logins
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Sent(settings).results == {"e-mail": None}
        assert Sent(settings, {"MAIL_PASSWORD": "wrong"}).results == {"e-mail": "SMTP 535"}
        assert Sent(settings, {}).results == {"e-mail": "environment variable MAIL_PASSWORD is not set"}
        assert len(post.messages) == 1
    with mail_server() as plain:
        assert Sent(mailing(plain, smtp_starttls=True)).results == {"e-mail": "SMTPNotSupportedError"}


def _certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
