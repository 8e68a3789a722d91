"""Replicas in containers and in a cluster: valid by the schemas, and every command, setting, port and path exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from memstate_core import __version__
from memstate_core.policy.settings import load_settings
from memstate_core.serve.options import KEY_VARIABLE, OPEN_PATHS
from memstate_core.storage.purpose import PUBLICATION
from memstate_core.storage.storage import storage
from memstate_pipeline.cli.main import app
from memstate_pipeline.cli.shared.output import Context
from memstate_pipeline.deploy.containers import container_files
from memstate_pipeline.deploy.kubernetes import cluster_files

PORT = 8420
SECRETS = {KEY_VARIABLE, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
OURS = "MEMSTATE_PUBLISH_"


@pytest.fixture(scope="module")
def manifests() -> dict[tuple[str, str], Any]:
    found = list(yaml.safe_load_all(cluster_files()["kubernetes.yaml"]))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.fixture(scope="module")
def overlay() -> Any:
    return yaml.safe_load(container_files()["compose.replicas.yaml"])


def services(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(container_files()[name])["services"]
    return found


def pods(manifests: dict[tuple[str, str], Any]) -> Iterator[tuple[Any, Any]]:
    """What makes pods, and the template of each."""
    for each in manifests.values():
        if "template" in each.get("spec", {}):
            yield each, each["spec"]["template"]


def containers(manifests: dict[tuple[str, str], Any]) -> Iterator[Any]:
    for _, template in pods(manifests):
        yield from (*template["spec"].get("initContainers", []), *template["spec"]["containers"])


def parsed(command: list[str]) -> dict[str, Any]:
    """The parameters of a command of memstate, as its command line reads them; fails where it would refuse them."""
    program, name, *arguments = command
    assert program == "memstate"
    group: Any = typer.main.get_command(app)
    given: dict[str, Any] = group.commands[name].make_context(name, arguments, obj=Context()).params
    return given


def test_the_schemas_of_kubernetes_allow_the_manifests(manifests: dict[tuple[str, str], Any]) -> None:
    schemas = pytest.importorskip("kubernetes_validate")
    for each in manifests.values():
        for version in ("1.31", schemas.latest_version()):
            schemas.validate(each, version, strict=True)
    wrong = {**manifests["Deployment", "memstate-replica"], "spec": {"replicas": "three"}}
    with pytest.raises(schemas.ValidationError):
        schemas.validate(wrong, schemas.latest_version(), strict=True)


def test_one_pod_writes_and_replicas_are_several(manifests: dict[tuple[str, str], Any]) -> None:
    store, replica = manifests["StatefulSet", "memstate"]["spec"], manifests["Deployment", "memstate-replica"]["spec"]
    assert store["replicas"] == 1
    assert store["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert replica["replicas"] > 1
    assert manifests["PodDisruptionBudget", "memstate-replica"]["spec"]["maxUnavailable"] < replica["replicas"]
    assert replica["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_selectors_find_the_pods_and_services_their_ports(manifests: dict[tuple[str, str], Any]) -> None:
    labels = {each["metadata"]["name"]: template["metadata"]["labels"] for each, template in pods(manifests)}
    ports = {
        each["metadata"]["name"]: {
            port["name"]: port["containerPort"]
            for container in template["spec"]["containers"]
            for port in container.get("ports", [])
        }
        for each, template in pods(manifests)
    }
    assert len({tuple(found.items()) for found in labels.values()}) == len(labels) == 2
    for (kind, name), each in manifests.items():
        if kind == "Service":
            assert each["spec"]["selector"] == labels[name]
            for port in each["spec"]["ports"]:
                assert (port["port"], ports[name][port["targetPort"]]) == (PORT, PORT)
        elif kind != "ConfigMap":
            assert each["spec"]["selector"]["matchLabels"] == labels[name]


def test_pods_have_no_rights_and_all_that_they_mount(manifests: dict[tuple[str, str], Any]) -> None:
    for each, template in pods(manifests):
        spec = template["spec"]
        assert not spec["automountServiceAccountToken"]
        assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 1000)
        volumes = {volume["name"] for volume in spec["volumes"]}
        volumes |= {template["metadata"]["name"] for template in each["spec"].get("volumeClaimTemplates", [])}
        for container in (*spec.get("initContainers", []), *spec["containers"]):
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/data", "/tmp"}
    for container in containers(manifests):
        assert container["image"] == f"memstate:{__version__}"
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}


def test_every_setting_exists_and_secrets_are_in_the_secret(
    manifests: dict[tuple[str, str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = manifests["ConfigMap", "memstate"]["data"]
    assert not SECRETS & set(settings)
    assert ("Secret", "memstate") not in manifests
    for container in containers(manifests):
        assert container["envFrom"] == [{"configMapRef": {"name": "memstate"}}, {"secretRef": {"name": "memstate"}}]
    ours = {name: value for name, value in settings.items() if name.startswith(OURS)}
    publish = load_settings(tmp_path, ours).publish
    assert set(ours) == {f"{OURS}{key}".upper() for key in type(publish).model_fields}
    assert publish.accept_writes
    assert publish.writer_url == f"http://memstate:{PORT}"
    monkeypatch.setenv("AWS_REGION", settings["AWS_REGION"])
    assert storage(publish.url, PUBLICATION).where == publish.url


def test_every_command_is_one_of_the_command_line(manifests: dict[tuple[str, str], Any]) -> None:
    commands = {each["name"]: each["command"] for each in containers(manifests)}
    plain = services("compose.yaml")
    assert commands["daemon"] == plain["daemon"]["command"]
    assert commands["webserver"] == [
        "127.0.0.1" if each == "0.0.0.0" else each for each in plain["webserver"]["command"]
    ]
    assert commands["api"] == plain["api"]["command"]
    assert parsed(commands["init"]) == parsed(["memstate", "init"])
    assert (parsed(commands["api"])["port"], parsed(commands["api"])["replica_of"]) == (PORT, None)
    replica = parsed(commands["replica"])
    assert (replica["port"], replica["accept_writes"]) == (PORT, True)
    assert replica["replica_of"] == f"$({OURS}URL)"
    head = cluster_files()["kubernetes.yaml"].partition("apiVersion")[0]
    assert parsed(["memstate", *head.rpartition("-- memstate ")[2].split()])["now"] is None


def test_probes_ask_paths_that_need_no_key(manifests: dict[tuple[str, str], Any]) -> None:
    ready = {}
    for container in containers(manifests):
        probes = {kind: container[kind] for kind in container if kind.endswith("Probe")}
        asked = {kind: probe["httpGet"]["path"] for kind, probe in probes.items() if "httpGet" in probe}
        assert set(asked.values()) <= OPEN_PATHS
        ready[container["name"]] = asked.get("readinessProbe")
    assert (ready["replica"], ready["api"]) == ("/readyz", "/healthz")
    (daemon,) = (each for each in containers(manifests) if each["name"] == "daemon")
    assert daemon["livenessProbe"]["exec"]["command"] == services("compose.yaml")["daemon"]["healthcheck"]["test"][1:]


def test_replicas_of_compose_use_the_url_that_the_others_publish_to(overlay: Any, tmp_path: Path) -> None:
    plain = services("compose.yaml")
    assert set(overlay["services"]) - set(plain) == {"replica"}
    assert overlay["name"] == yaml.safe_load(container_files()["compose.yaml"])["name"]
    replica = overlay["services"]["replica"]
    given = parsed([expanded(each) for each in replica["command"]])
    for service in overlay["services"].values():
        ours = {name: expanded(text) for name, text in service["environment"].items() if name.startswith(OURS)}
        assert SECRETS - {KEY_VARIABLE} <= {name for name, text in service["environment"].items() if text is None}
        publish = load_settings(tmp_path, ours).publish
        assert (publish.url, publish.accept_writes) == (given["replica_of"], True)
        assert f"published:{publish.url.removeprefix('file://')}" in service["volumes"]
    assert (given["accept_writes"], given["host"]) == (True, "0.0.0.0")
    assert {volume.partition(":")[0] for volume in replica["volumes"]} == set(overlay["volumes"])
    assert {name: replica[name] for name in ("read_only", "cap_drop", "security_opt", "tmpfs", "image")} == {
        name: plain["api"][name] for name in ("read_only", "cap_drop", "security_opt", "tmpfs", "image")
    }
    first, last = replica["ports"][0].split(":")[1].split("-")
    assert replica["ports"][0].startswith("127.0.0.1:")
    assert replica["ports"][0].endswith(f":{PORT}")
    assert int(last) - int(first) >= replica["deploy"]["replicas"] - 1
    assert KEY_VARIABLE in replica["environment"]
    assert "/published" in container_files()["Dockerfile"]


def expanded(text: str) -> str:
    """A value of compose as it is where no variable is set."""
    if not text.startswith("${"):
        return text
    _, _, default = text.removeprefix("${").removesuffix("}").partition(":-")
    return default
