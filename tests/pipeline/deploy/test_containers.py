"""The container files of `memstate init`: sound by their linters, and the same commands as those of `memstate ui`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from memstate_pipeline.deploy.containers import container_files
from memstate_pipeline.deploy.helm import helm_files
from memstate_pipeline.deploy.kubernetes import cluster_files
from memstate_pipeline.deploy.kubernetes_runs import run_files
from memstate_pipeline.deploy.workers import worker_files
from tests.pipeline.conftest import run_memstate

_RULES = (
    "{extends: default, rules: {line-length: {max: 120}, braces: {max-spaces-inside: 0},"
    " comments: {min-spaces-from-content: 1}}}"
)
COMPOSE = ("compose.yaml", "compose.replicas.yaml", "compose.workers.yaml")
CLUSTER = ("kubernetes.yaml", "kubernetes.workers.yaml", "helm.values.yaml")
LINTERS = {
    "hadolint": ["hadolint", "Dockerfile"],
    "yamllint": ["yamllint", "-s", "-d", _RULES, *COMPOSE, *CLUSTER],
    "kubeconform": ["kubeconform", "-strict", *CLUSTER[:2]],
    "compose": ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", *COMPOSE],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = container_files() | worker_files() | cluster_files() | run_files() | helm_files()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("linter", LINTERS)
def test_linters_find_nothing(folder: Path, linter: str) -> None:
    program, *arguments = LINTERS[linter]
    found = shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    linted = subprocess.run([found, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert linter == "compose" or linted.stdout == ""


def test_the_image_is_built_in_stages_and_runs_without_root() -> None:
    lines = container_files()["Dockerfile"].splitlines()
    bases = {line.split()[1] for line in lines if line.startswith("FROM ")}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.12\.\d+-slim-bookworm", bases.pop())
    assert len([line for line in lines if line.startswith("FROM ")]) == 2
    assert [line for line in lines if line.startswith("USER ")] == ["USER 1000:1000"]
    assert [line.split()[0] for line in lines if line.startswith("HEALTHCHECK")] == ["HEALTHCHECK"]


@pytest.mark.parametrize("kept", [True, False])
def test_the_image_has_the_versions_that_are_kept_beside_its_recipe(folder: Path, kept: bool) -> None:
    """What its build copies, and the constraints that pip reads there: those of the file, or none."""
    pattern, command = re.findall(
        r"^COPY memstate-\*\.whl (\S+) \./\nRUN (.*?)\n\n", _recipe(), re.DOTALL | re.MULTILINE
    )[0]
    (folder / "memstate-1-py3-none-any.whl").touch()
    if kept:
        (folder / "constraints.txt").write_text("polars==1.0\n")
    assert [path.name for path in folder.glob(pattern)] == ["constraints.txt"] * kept
    shown = command.replace("/opt/memstate/bin/pip", "echo").replace("python -m venv /opt/memstate", "true")
    script = f"EXTRAS=serve\n{shown}\n"
    done = subprocess.run(["sh", "-ec", script], cwd=folder, capture_output=True, text=True, check=True)
    expected = "install --no-cache-dir --constraint constraints.txt memstate-1-py3-none-any.whl[serve]\n"
    assert done.stdout == expected
    assert (folder / "constraints.txt").read_text() == "polars==1.0\n" * kept


def _recipe() -> str:
    return container_files()["Dockerfile"]


@pytest.mark.slow
def test_the_containers_run_the_commands_of_memstate_ui_on_one_volume(tmp_path: Path) -> None:
    planned = run_memstate(tmp_path, "ui", "--dry-run", "--log-format", "json", "--json").document
    assert run_memstate(tmp_path, "init").code == 0
    files = {name: (tmp_path / "deploy" / name).read_text() for name in container_files()}
    assert files == container_files()
    services: dict[str, Any] = yaml.safe_load(files["compose.yaml"])["services"]
    assert services["webserver"]["command"] == _in_container(planned["commands"]["web server"], "3000")
    assert services["daemon"]["command"] == _in_container(planned["commands"]["daemon"])
    assert services["api"]["command"] == ["memstate", "serve", "--host", "0.0.0.0"]
    for service in services.values():
        assert service["volumes"] == [{"type": "bind", "source": "..", "target": "/data"}]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    variables = dict(re.findall(r"(MEMSTATE_HOME|DAGSTER_HOME)=(\S+)", files["Dockerfile"]))
    assert variables == {name: value.replace(str(tmp_path), "/data") for name, value in planned["environment"].items()}


def _in_container(command: list[str], port: str = "") -> list[str]:
    """A command of `memstate ui` with the program, address and port that it has in a container."""
    program, *arguments = command
    if port:
        arguments[arguments.index("--host") + 1] = "0.0.0.0"
        arguments[arguments.index("--port") + 1] = port
    return [Path(program).name, *arguments]
