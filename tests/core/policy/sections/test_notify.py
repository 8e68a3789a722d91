"""The settings of notifications: channels are whole, addresses are of the web, and no error shows a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.model.errors import SettingsError
from memstate_core.policy.sections.notify import NotifySettings
from memstate_core.policy.settings import load_settings

HOOK = "webhook_secret_env = 'HOOK_SECRET'\nwebhook_url = "
MAIL = "smtp_host = 'mail.example.org'\nmail_from = 'memstate@example.org'\nmail_to = ['ops@example.org']\n"


def load(tmp_path: Path, content: str) -> NotifySettings:
    (tmp_path / "memstate.toml").write_text(f"[notify]\n{content}")
    return load_settings(tmp_path, {}).notify


def test_both_channels_are_read(tmp_path: Path) -> None:
    settings = load(tmp_path, f"{HOOK}'https://example.org:8443/a/s3cret?b=c'\n{MAIL}")
    assert settings.configured
    assert settings.webhook_host == "https://example.org"
    assert settings.mail_to == ("ops@example.org",)
    assert not load(tmp_path, "").configured


@pytest.mark.parametrize(
    "content",
    [
        *(
            HOOK + repr(url)
            for url in (
                "file:///s3cret",
                "ftp://example.org/s3cret",
                "https://user:s3cret@example.org/",
                "https://s3cret@example.org/",
                "https:///s3cret",
                "https://example.org:port/s3cret",
                "https://example.org/s3cret path",
                "https://example.org/#s3cret",
                "s3cret",
            )
        ),
        f'{HOOK}"https://example.org/s3cret\\r\\nX-Header: 1"',
        "webhook_url = 'https://example.org/s3cret'",
        "webhook_secret_env = 's3cret value'",
        "webhook_secret = 's3cret'",
        "smtp_password = 's3cret'",
        f"{MAIL}smtp_password_env = 's3cret value'",
        f"{MAIL}smtp_password_env = 'S3CRET'",
        f"{MAIL}smtp_user = 's3cret'\nsmtp_password_env = 'PASSWORD'\nsmtp_starttls = false",
    ],
)
def test_what_cannot_be_used_is_refused_without_showing_it(tmp_path: Path, content: str) -> None:
    with pytest.raises(SettingsError, match="notify") as refused:
        load(tmp_path, content)
    assert "s3cret" not in str(refused.value).lower()
    assert "s3cret" not in str(refused.value.facts).lower()


@pytest.mark.parametrize(
    "content",
    [
        "smtp_host = 'mail.example.org'",
        MAIL.replace("ops@example.org", "ops"),
        MAIL.replace("ops@example.org", "ops@example.org, other@example.org"),
        MAIL.replace("'ops@example.org'", '"ops@example.org\\r\\nBcc: x@example.org"'),
        MAIL.replace("mail.example.org", "mail example"),
        "timeout_seconds = 60",
    ],
)
def test_mail_has_a_server_a_sender_and_receivers(tmp_path: Path, content: str) -> None:
    with pytest.raises(SettingsError, match="notify"):
        load(tmp_path, content)
