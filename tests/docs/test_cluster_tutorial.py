"""The tutorial from one folder to a cluster: its commands are run, or checked against the files that they name."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from memstate_core import __version__
from memstate_core.night.erasure.run_database import POSTGRES_VARIABLE
from memstate_pipeline.deploy.files import machine_files
from memstate_pipeline.deploy.machine import Machine
from memstate_pipeline.pod_settings import IMAGE_VARIABLE
from tests.docs.conftest import PAGES, ROOT
from tests.docs.shell import commands, shows, steps
from tests.pipeline.conftest import clean_environment, run_memstate
from tests.pipeline.deploy.compose import merged
from tests.pipeline.deploy.test_replicas import SECRETS, containers, parsed
from tests.pipeline.kubernetes_api import manifests
from tests.warm import run

PAGE = PAGES / "tutorial" / "cluster.md"
CHECKED = (PAGE, PAGES / "guides" / "pods.md")
IMAGE = f"registry.example.com/memstate:{__version__}"
MOVE = "MEMSTATE_STORE_URL=s3://my-bucket/store memstate maintain"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """What `memstate init` writes into the folder `deploy`."""
    return machine_files(Machine(Path("memstate"), Path("home"), "user", "0 2 * * *", "UTC"))


@pytest.mark.slow
def test_the_commands_of_memstate_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(PAGE.with_name("conversations.json"), tmp_path)
    monkeypatch.chdir(tmp_path)
    environment = clean_environment(MEMSTATE_HOME=str(tmp_path / "my-memory"), COLUMNS="120", PWD=str(tmp_path))
    for command, shown in steps(PAGE):
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            environment[name] = value.replace("$PWD", str(tmp_path))
            continue
        done = run(["-m", "memstate_pipeline", *shlex.split(command)[1:]], environment)
        assert done.returncode == 0, done.stderr
        shows(done.stdout, shown, command)
    assert commands(PAGE).count(MOVE) == 1
    moved = {"MEMSTATE_STORE_URL": f"file://{tmp_path}/other/store"}
    home = tmp_path / "my-memory"
    night = run_memstate(home, "maintain", "--now", "2026-03-11T02:00:00Z", **moved)
    assert night.code == 0, night.stderr
    assert run_memstate(tmp_path / "third", "pull", **moved).code == 0
    assert run_memstate(tmp_path / "third", "status", "--json", **moved).document["topics"]["active"] == 4


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_other_commands_name_files_services_and_objects_that_exist(page: Path, files: dict[str, str]) -> None:
    for command in commands(page):
        words = shlex.split(re.sub(r"^(\w+=\S+ )+(?=\S)", "", command))
        program = words[0].partition("=")[0] if "=" in words[0] else words[0]
        if program.isupper():  # a line of `.env`
            assert f"${{{program}:?" in files["compose.workers.yaml"]
            continue
        assert program in CHECKS, f"{command}: of what kind is it?"
        CHECKS[program](words[1:], files)


def _pip(words: list[str], _: dict[str, str]) -> None:
    extras = re.findall(r"\[(.+)\]", words[-1]) if words[0] == "install" else []
    _extras(",".join(extras))


def _extras(names: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name for name in names.split(",") if name} <= set(known)


def _docker(words: list[str], files: dict[str, str]) -> None:
    if words[0] == "build":
        argument, tag = words[words.index("--build-arg") + 1], words[words.index("--tag") + 1]
        assert f"ARG {argument.partition('=')[0]}=" in files["Dockerfile"]
        _extras(argument.partition("=")[2])
        assert tag == IMAGE
        return
    if words[0] == "push":
        assert words[1] == IMAGE
        return
    assert words[0] == "compose"
    named = [words[at + 1] for at, word in enumerate(words) if word == "--file"]
    rest = words[1 + 2 * len(named) :]
    services = merged(*named)["services"]
    assert rest[0] in ("build", "run", "up", "exec", "down")
    if rest[0] in ("run", "exec"):
        service, *inner = [word for word in rest[1:] if word != "--rm"]
        assert service in services
        parsed(inner)


def _sed(words: list[str], files: dict[str, str]) -> None:
    assert words[0] == "-i.bak"
    edits = subprocess.run(["sed", *words[1:-1]], input=files[words[-1]], capture_output=True, text=True, check=True)
    changed = list(yaml.safe_load_all(edits.stdout))
    assert {
        each["image"] for each in containers({(each["kind"], each["metadata"]["name"]): each for each in changed})
    } == {IMAGE}
    (data,) = [each["data"] for each in changed if each["metadata"]["name"] == "memstate" and "data" in each]
    assert data[IMAGE_VARIABLE] == IMAGE
    assert all(text.startswith("s3://my-bucket/") for text in data.values() if "//" in text)


def _kubectl(words: list[str], files: dict[str, str]) -> None:
    verb, *rest = words
    found = manifests()
    if verb == "create":
        _created(rest)
    elif verb == "apply":
        assert rest[rest.index("--filename") + 1] in files
        wanted = re.findall(r"in \((.+)\)", " ".join(rest))
        labels = {each["metadata"].get("labels", {}).get("app.kubernetes.io/component") for each in found.values()}
        assert set(", ".join(wanted).split(", ")) - {""} <= labels
    else:
        assert verb in ("rollout", "exec", "port-forward")
        (place,) = [word for word in rest if word.startswith("deployment/")]
        pod = found["Deployment", place.partition("/")[2]]["spec"]["template"]["spec"]
        if verb == "exec":
            assert rest[rest.index("--container") + 1] in {each["name"] for each in pod["containers"]}
            parsed(rest[rest.index("--") + 1 :])


def _created(words: list[str]) -> None:
    kind, name = words[0], words[2] if words[0] == "secret" else words[1]
    mounted = yaml.safe_dump(list(manifests().values()))
    assert f"name: {name}\n" in mounted
    if kind == "secret":
        keys = {word.removeprefix("--from-literal=").partition("=")[0] for word in words[3:]}
        assert keys == {*SECRETS, POSTGRES_VARIABLE}
    else:
        assert words[2].rpartition("/")[2].removeprefix("--from-file=") == "memstate.toml"
        words = [*words[:2], f"--from-file={ROOT / 'LICENSE'}"]
    if shutil.which("kubectl"):
        command = ["kubectl", "create", *words, "--dry-run=client", "--output=yaml"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        assert yaml.safe_load(made.stdout)["kind"] in ("Secret", "ConfigMap")


def _helm(words: list[str], files: dict[str, str]) -> None:
    if "--values" in words:
        assert words[words.index("--values") + 1] in files


def _memstate(words: list[str], _: dict[str, str]) -> None:
    parsed(["memstate", *words])


def _known(*_: Any) -> None:
    pass


CHECKS: dict[str, Callable[[list[str], dict[str, str]], None]] = {
    **{"pip": _pip, "docker": _docker, "sed": _sed, "kubectl": _kubectl, "helm": _helm},
    **dict.fromkeys(("export", "cd"), _known),
    "memstate": _memstate,
}
