"""Where the home of a command is."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstate_core.model.errors import HomeUnknown, StoreUrlRefused
from memstate_core.run.home_path import home_path, is_url
from memstate_core.run.store import open_store


def test_a_folder_is_itself(tmp_path: Path) -> None:
    assert home_path(str(tmp_path), {"MEMSTATE_HOME": "/elsewhere"}) == tmp_path
    assert home_path(None, {"MEMSTATE_HOME": str(tmp_path)}) == tmp_path
    assert home_path(None, {}) == Path("~/.memstate").expanduser()
    assert [is_url(home) for home in ("", "a/b", "C:/store", "s3://b", "file:///b")] == [False] * 3 + [True] * 2


@pytest.mark.parametrize("environ", [{}, {"MEMSTATE_HOME": "~nouser/x"}])
def test_a_folder_of_an_unknown_user_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(HomeUnknown, match=r"the home '~nouser/x' cannot be found: .* '~nouser'"):
        home_path(None if environ else "~nouser/x", environ)
    assert home_path("/srv/~nouser/x") == Path("/srv/~nouser/x")


def test_a_url_has_one_checkout_on_a_machine_whose_settings_name_it(tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path)}
    homes = {url: home_path(url, environ) for url in ("s3://b/a store", "s3://b/a-store", "file:///mnt/b/a store")}
    assert len(set(homes.values())) == 3
    assert {home.parent for home in homes.values()} == {tmp_path / "memstate"}
    for url, home in homes.items():
        assert open_store(home, {}).settings.store.url == url
        assert home.name.startswith(("b-a-store-", "mnt-b-a-store-"))
        settings = home / "memstate.toml"
        settings.write_text(settings.read_text() + "lease_seconds = 7\n")
        assert home_path(None, environ | {"MEMSTATE_HOME": url, "MEMSTATE_STORE_URL": url}) == home
        assert open_store(home, {}).settings.store.lease_seconds == 7


@pytest.mark.parametrize("url", ["http://host/store", "s3://key:secret@b/store", "s3://b/store?token=secret", "s3://"])
def test_what_names_no_store_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(StoreUrlRefused, match="without credentials") as caught:
        home_path(url, {"XDG_DATA_HOME": str(tmp_path)})
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_two_urls_are_refused(tmp_path: Path) -> None:
    environ = {"XDG_DATA_HOME": str(tmp_path), "MEMSTATE_STORE_URL": "s3://other"}
    with pytest.raises(StoreUrlRefused, match="MEMSTATE_STORE_URL names s3://other"):
        home_path("s3://b/store", environ)
    assert list(tmp_path.iterdir()) == []
