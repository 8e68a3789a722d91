"""Tests mirror the tree: each package of the source that has modules has a folder of tests, or is listed here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MIRRORED = {"memstate_core": "tests/core", "memstate_pipeline": "tests/pipeline"}
TESTED_ELSEWHERE = {
    "memstate_core/conformance/systems": (
        "tests/core/conformance/test_run.py",
        "tests/pipeline/cli/test_conformance.py",
    ),
    "memstate_core/ingest/formats/shared": ("tests/core/ingest/formats/test_formats.py",),
    "memstate_core/model/answers": ("tests/core/serve/test_response_models.py", "tests/core/client/test_clients.py"),
    "memstate_core/model/forms": (
        "tests/core/ingest/validation/test_memory_form.py",
        "tests/pipeline/test_every_form.py",
    ),
    "memstate_core/night/erasure": ("tests/pipeline/test_erasure.py", "tests/pipeline/test_erasure_of_marks.py"),
    "memstate_core/night/resharding": ("tests/pipeline/cli/test_reshard.py", "tests/pipeline/test_reshard_copies.py"),
    "memstate_core/remote": ("tests/core/llm/test_model_client.py", "tests/core/embed/test_endpoint_model.py"),
    "memstate_pipeline/cli/memory": ("tests/pipeline/test_memory_items.py", "tests/pipeline/test_session_states.py"),
}
"""Packages that are tested where they are used, by their callers or over whole nights, and by which files."""


def test_every_package_has_its_tests_in_the_mirrored_folder() -> None:
    assert set(unmirrored(ROOT)) == set(TESTED_ELSEWHERE)


def test_packages_that_are_tested_elsewhere_name_tests() -> None:
    assert [name for names in TESTED_ELSEWHERE.values() for name in names if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["memstate_core/run/step.py"], ["memstate_core/run"]),
        (["memstate_core/run/step.py", "tests/core/run/helper.py"], ["memstate_core/run"]),
        (["memstate_core/run/step.py", "tests/core/run/test_step.py"], []),
        (["memstate_pipeline/cli/memory/write.py"], ["memstate_pipeline/cli/memory"]),
        (["memstate_core/demo/__init__.py", "memstate_core/demo/sample.jsonl"], []),
    ],
)
def test_a_package_without_tests_is_found(tmp_path: Path, files: list[str], found: list[str]) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert list(unmirrored(tmp_path)) == found


def unmirrored(root: Path) -> Iterator[str]:
    """Packages with modules whose mirrored folder has no tests of its own."""
    for source, tests in MIRRORED.items():
        for package in sorted({path.parent for path in (root / source).rglob("*.py") if path.name != "__init__.py"}):
            if not any((root / tests / package.relative_to(root / source)).glob("test_*.py")):
                yield str(package.relative_to(root))
