"""The containers of workers: beside those of one host, with every part that they name, and no secret in the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_core.policy.settings import load_settings
from memstate_pipeline.deploy.containers import container_files
from memstate_pipeline.deploy.workers import worker_files
from memstate_pipeline.instance_settings import BROKER_VARIABLE, DRIVER, RESULTS_VARIABLE, WORKER

SECRETS = {"DATABASE_PASSWORD", "BROKER_PASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
MACHINES = ("webserver", "daemon", "api", "worker", "settings")


@pytest.fixture(scope="module")
def overlay() -> Any:
    return yaml.safe_load(worker_files()["compose.workers.yaml"])


@pytest.fixture(scope="module")
def plain() -> Any:
    return yaml.safe_load(container_files()["compose.yaml"])


def expanded(text: str) -> str:
    """A value of compose as it is where each secret is `s` and no other variable is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", re.sub(r"\$\{\w+:\?[^}]*\}", "s", text))


def test_all_machines_share_database_broker_and_storage_and_no_value_is_in_the_file(
    overlay: Any, tmp_path: Path
) -> None:
    services = overlay["services"]
    (shared,) = {tuple(services[name]["environment"].items()) for name in MACHINES}
    given = {name: expanded(text) for name, text in shared}
    assert given[POSTGRES_VARIABLE].startswith(DRIVER)
    assert given[BROKER_VARIABLE] == given[RESULTS_VARIABLE]
    bucket = load_settings(tmp_path, {"MEMSTATE_STORE_URL": given["MEMSTATE_STORE_URL"]}).store.url.split("/")[2]
    assert services["objects"]["volumes"] == [f"objects:/buckets/{bucket}"]
    hosts = [
        re.search(r"(?:@|//)(\w+):(\d+)", given[name])
        for name in (POSTGRES_VARIABLE, BROKER_VARIABLE, "AWS_ENDPOINT_URL")
    ]
    assert [found and found[1] for found in hosts] == ["database", "broker", "objects"]
    assert set(re.findall(r"\$\{(\w+):\?", worker_files()["compose.workers.yaml"])) == SECRETS
    assert set(overlay["volumes"]) == {"database", "broker", "objects"}


def test_workers_have_homes_of_their_own_and_the_rights_of_the_others(overlay: Any, plain: Any) -> None:
    worker, api = overlay["services"]["worker"], plain["services"]["api"]
    assert overlay["name"] == plain["name"]
    assert worker["deploy"]["replicas"] > 1
    assert worker["command"][2].endswith(f"exec {WORKER}")
    assert [volume["target"] for volume in worker["volumes"]] == ["/data/memstate.toml"]
    assert "VOLUME /data" in container_files()["Dockerfile"]
    for name in ("worker", "settings"):
        service = overlay["services"][name]
        assert {each: service[each] for each in ("read_only", "cap_drop", "security_opt", "tmpfs")} == {
            each: api[each] for each in ("read_only", "cap_drop", "security_opt", "tmpfs")
        }
    for name in MACHINES:
        assert overlay["services"][name]["build"]["args"] == {"EXTRAS": "cluster,serve"}
        assert set(overlay["services"][name].get("depends_on", {})) <= set(overlay["services"])
    assert "ARG EXTRAS=" in container_files()["Dockerfile"]
    assert not any("ports" in service for service in overlay["services"].values())


def test_images_of_others_are_pinned(overlay: Any) -> None:
    images = {service["image"] for service in overlay["services"].values()} - {"memstate-cluster"}
    assert all(re.fullmatch(r"[\w/]+:v?\d+\.\d+(\.\d+)?(-alpine)?", image) for image in images), images
