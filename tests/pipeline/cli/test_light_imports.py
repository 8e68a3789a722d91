"""Loading definitions, or asking for help, must not load what only a run needs, nor look for garbage meanwhile."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "sentence_transformers", "transformers", "sklearn", "matplotlib", "openai", "kubernetes")


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()) if done.stdout.strip() else set()


@pytest.mark.slow
def test_the_definitions_load_without_torch() -> None:
    assert loaded_after("import memstate_pipeline.definitions as d; d.defs()") == set()


@pytest.mark.slow
def test_few_garbage_collections_while_the_definitions_load() -> None:
    """450 of them took a sixth of the time: nearly all that is made then stays."""
    code = "import gc, memstate_pipeline.definitions; print(sum(each['collections'] for each in gc.get_stats()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100


def test_no_garbage_is_collected_when_the_process_ends() -> None:
    """It took 0.4 seconds of a command. What is registered first runs last."""
    code = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count())); import memstate_pipeline"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0


@pytest.fixture(scope="module")
def loaded_by_help() -> set[str]:
    code = "sys.argv = ['memstate', '--help']\nfrom memstate_pipeline.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "typer" in loaded
    return loaded


@pytest.mark.parametrize("heavy", ["dagster", "polars", "kuzu", "deltalake", *HEAVY])
def test_help_loads_nothing_heavy(heavy: str, loaded_by_help: set[str]) -> None:
    assert heavy not in loaded_by_help
