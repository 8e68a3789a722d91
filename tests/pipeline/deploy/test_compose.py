"""The files of Compose together, as they are started: valid by its schema, and nothing is missing or there twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pipeline.deploy.compose import merged

TOGETHER = [
    ("compose.yaml",),
    ("compose.yaml", "compose.replicas.yaml"),
    ("compose.yaml", "compose.workers.yaml"),
    ("compose.yaml", "compose.workers.yaml", "compose.replicas.yaml"),
]
every_set = pytest.mark.parametrize("names", TOGETHER, ids=lambda names: "+".join(names))


def check(document: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """The linter of Compose's schema on a document."""
    (folder / "compose.yaml").write_text(yaml.safe_dump(document))
    program = Path(sys.executable).with_name("check-jsonschema")
    command = [program if program.exists() else "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, folder / "compose.yaml"], capture_output=True, text=True, check=False)


@every_set
def test_merged_files_are_valid(names: tuple[str, ...], tmp_path: Path) -> None:
    document = merged(*names)
    found = check(document, tmp_path)
    assert found.returncode == 0, found.stdout
    document["services"]["api"]["depends_on"] = 3
    assert check(document, tmp_path).returncode == 1, "the schema is looked at"


@every_set
def test_all_that_a_service_names_exists(names: tuple[str, ...]) -> None:
    document = merged(*names)
    services = document["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        volumes = [each.split(":")[0] for each in service.get("volumes", []) if isinstance(each, str)]
        assert set(volumes) <= set(document.get("volumes", {})), name
        assert "image" in service, name
    used = {each.split(":")[0] for service in services.values() for each in service.get("volumes", []) if ":" in each}
    assert set(document.get("volumes", {})) <= used


@every_set
def test_no_two_services_listen_at_one_port_or_write_to_one_volume_of_their_own(names: tuple[str, ...]) -> None:
    services = merged(*names)["services"]
    published = [port.rpartition(":")[0] for service in services.values() for port in service.get("ports", [])]
    assert len(set(published)) == len(published)
    assert all(port.startswith("127.0.0.1:") for port in published)
    for name in ("database", "broker", "objects"):
        users = [
            service for service in services.values() if any(f"{name}:" in str(v) for v in service.get("volumes", []))
        ]
        assert len(users) <= 1


def test_an_overlay_adds_to_the_services_that_it_names() -> None:
    services = merged(*TOGETHER[-1])["services"]
    for name in ("webserver", "daemon", "api"):
        service = services[name]
        assert {"DAGSTER_POSTGRES_URL", "CELERY_BROKER_URL", "MEMSTATE_PUBLISH_URL"} <= set(service["environment"])
        assert [each if isinstance(each, str) else each["target"] for each in service["volumes"]] == [
            "/data",
            "published:/published",
        ]
        assert service["command"] == merged("compose.yaml")["services"][name]["command"]
        assert (service["image"], service["read_only"]) == ("memstate-cluster", True)
        assert service["build"]["args"] == {"EXTRAS": "cluster,serve"}
        assert "settings" in service["depends_on"]
