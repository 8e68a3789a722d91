"""The layers hold, and no module uses private names of a library."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("memstate_core", "memstate_pipeline")
ADAPTERS = {
    "memstate_pipeline/run_history.py": {"dagster._core.storage.event_log", "dagster._core.storage.runs"},
    "memstate_pipeline/run_output.py": {"dagster._core.storage.noop_compute_log_manager"},
    "memstate_pipeline/run_origin.py": {"dagster._core.remote_origin", "dagster._core.types.loadable_target_origin"},
}
"""Modules that may use private names of a library, each with the names; every one explains itself in its docstring."""
NAMED_TUPLE = {"_asdict", "_replace", "_fields", "_make"}
"""Public names of named tuples in spite of their underscore."""


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
    own = {name for tree in trees().values() for name in defined(tree)}
    found = {f"{path}: {name}" for path, tree in trees().items() for name in private_references(tree, own)}
    assert found == {f"{path}: {name}" for path, names in ADAPTERS.items() for name in names}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch\ntorch.ops.mkldnn._is_fast()", "_is_fast"),
        ("from lib import _secret", "_secret"),
        ("from lib._inner import thing", "lib._inner"),
        ("import lib._inner", "lib._inner"),
        ("class Ours(Theirs):\n    def f(self):\n        return self._tool_manager", "_tool_manager"),
        ("def f(session):\n    session._closed = True", "_closed"),
    ],
)
def test_the_use_of_a_private_name_is_found(source: str, name: str) -> None:
    assert list(private_references(ast.parse(source), set())) == [name]


def test_our_own_private_names_are_ours() -> None:
    source = "class Ours:\n    def __init__(self):\n        self._closed = False\n    def f(self): return self._closed"
    tree = ast.parse(source)
    assert list(private_references(tree, set(defined(tree)))) == []


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


def is_private(name: str) -> bool:
    """Whether a name is private by convention."""
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def defined(tree: ast.Module) -> Iterator[str]:
    """Private names that a module defines: functions, classes, attributes, variables, arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            yield node.attr


def private_references(tree: ast.Module, own: set[str]) -> Iterator[str]:
    """Private names of other modules that a module imports, reads or sets, in the order of the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.attr
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _foreign_private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            if _foreign_private(node.module):
                yield node.module
            elif not node.module.startswith(PACKAGES):
                yield from (alias.name for alias in node.names if is_private(alias.name))


def _foreign_private(module: str) -> bool:
    return not module.startswith(PACKAGES) and any(is_private(part) for part in module.split("."))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}
