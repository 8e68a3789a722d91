"""The layers hold, and no module uses private names of another one."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.private_names import PACKAGES, private_references

ROOT = Path(__file__).parents[1]
ADAPTERS = {
    "memstate_pipeline/run_history.py": {"dagster._core.storage.event_log", "dagster._core.storage.runs"},
    "memstate_pipeline/run_output.py": {"dagster._core.storage.noop_compute_log_manager"},
    "memstate_pipeline/run_origin.py": {"dagster._core.remote_origin", "dagster._core.types.loadable_target_origin"},
}
"""Modules that may use private names of a library, each with the names; every one explains itself in its docstring."""


def test_no_package_imports_one_above_it() -> None:
    """The contracts in pyproject.toml: layers, kuzu only in state.graph, dagster only in memstate_pipeline."""
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_upward_import_is_found(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    with (copy / "memstate_core" / "state" / "home.py").open("a") as file:
        file.write("\nfrom memstate_core.night import publish  # noqa\n")
    done = lint(copy)
    assert done.returncode == 1
    assert "memstate_core.state.home -> memstate_core.night.publish" in done.stdout


@pytest.mark.parametrize("module", ["memstate_core.revise.dependency", "memstate_core.state.fold.dependents"])
def test_a_check_that_imports_what_it_checks_is_found(tmp_path: Path, module: str) -> None:
    copy = copied(tmp_path)
    with (copy / "memstate_core" / "night" / "checks" / "bounds.py").open("a") as file:
        file.write(f"\nimport {module}  # noqa\n")
    done = lint(copy)
    assert done.returncode == 1
    assert f"memstate_core.night.checks.bounds -> {module}" in done.stdout


@pytest.mark.parametrize("line", ["import kuzu", "import dagster"])
def test_an_import_of_an_engine_outside_its_module_is_found(tmp_path: Path, line: str) -> None:
    copy = copied(tmp_path)
    with (copy / "memstate_core" / "retrieve" / "query.py").open("a") as file:
        file.write(f"\n{line}  # noqa\n")
    done = lint(copy)
    assert done.returncode == 1
    assert f"memstate_core.retrieve.query -> {line.split()[1]}" in done.stdout


def test_a_new_package_must_be_given_a_layer(tmp_path: Path) -> None:
    copy = copied(tmp_path)
    (copy / "memstate_core" / "unplaced").mkdir()
    (copy / "memstate_core" / "unplaced" / "__init__.py").touch()
    done = lint(copy)
    assert done.returncode == 1
    assert "memstate_core.unplaced" in done.stdout


def test_no_private_name_of_a_library_is_used_outside_its_adapter() -> None:
    found = {f"{path}: {name}" for path, name in private_references(trees())}
    assert found == {f"{path}: {name}" for path, names in ADAPTERS.items() for name in names}


OURS = "class Ours(Base):\n    def __init__(self):\n        self._closed = False\n"
"""A class of ours, whose base in another module defines `_opened`."""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch\ntorch.ops.mkldnn._is_fast()", "_is_fast"),
        ("from lib import _secret", "_secret"),
        ("from lib._inner import thing", "lib._inner"),
        ("import lib._inner", "lib._inner"),
        ("class Other(Theirs):\n    def f(self):\n        return self._tool_manager", "_tool_manager"),
        ("def f(session):\n    session._closed = True", "_closed"),
        ("def f(session):\n    return getattr(session, '_closed', None)", "_closed"),
        (f"{OURS}def f(session):\n    session._closed = True", "_closed"),
        (f"{OURS}def f(ours: Ours):\n    ours._closed = True", "_closed"),
        (f"{OURS}    def f(self, session):\n        session._closed = True", "_closed"),
        (f"{OURS}    def f(self):\n        self.session._closed = True", "_closed"),
        (f"{OURS}    def f(self, session: Theirs):\n        session._closed = True", "_closed"),
        (f"{OURS}    def f(self):\n        return super()._closed", "_closed"),
        (f"{OURS}class Other(Theirs):\n    def f(self):\n        return self._closed", "_closed"),
    ],
)
def test_the_use_of_a_private_name_is_found(source: str, name: str) -> None:
    assert [found for _, found in private_references(modules(source))] == [name]


@pytest.mark.parametrize(
    "source",
    [
        f"{OURS}    def f(self):\n        return self._closed or self._opened",
        f"{OURS}    def f(self):\n        return super()._opened",
        f"{OURS}    def f(self, other: Ours):\n        return self._closed == other._closed",
        f"{OURS}    def f(self):\n        twin: Ours = copy(self)\n        return twin._closed",
        f"{OURS}class Other(Ours):\n    def f(self):\n        return self._closed or self._opened",
        f"{OURS}    def f(self):\n        return self.row._asdict()",
    ],
)
def test_our_own_private_names_are_ours(source: str) -> None:
    assert list(private_references(modules(source))) == []


def modules(source: str) -> dict[str, ast.Module]:
    """A module of ours, and the one with its base."""
    base = ast.parse("class Base:\n    def _opened(self):\n        pass")
    imported = "from memstate_core.model.base import Base\n"
    return {"memstate_core/model/base.py": base, "memstate_core/run/ours.py": ast.parse(imported + source)}


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Runs import-linter with the contracts of the project on a tree."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    return subprocess.run([*command, "--no-cache"], cwd=root, env=environment(root), capture_output=True, text=True)


def environment(root: Path) -> dict[str, str]:
    """An environment in which this tree is the one that is imported."""
    import os

    return os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}


def copied(folder: Path) -> Path:
    """A copy of the packages and the project file, to damage."""
    import shutil

    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the packages, parsed, by its path below the root."""
    paths = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}
