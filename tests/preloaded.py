"""Loads memstate and the libraries that its commands load; `tests.warm` forks processes from one that did this."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import io
import os
import pkgutil
import tempfile
from pathlib import Path

import typer.main

import memstate_core
import memstate_pipeline
from memstate_core.embed import openvino_model, sentence_model
from memstate_core.embed.openvino_import import openvino
from memstate_core.state.home import Home
from memstate_pipeline.cli.main import app
from memstate_pipeline.definitions import build_defs
from memstate_pipeline.instance import dagster_instance
from memstate_pipeline.nights import NIGHTLY
from memstate_pipeline.report import plots, templates
from tests.allocator import one_heap
from tests.huge_pages import into_huge_pages
from tests.run_history import hurried

gc.disable()  # what is loaded stays
one_heap(os.environ)
openvino()
for name in (
    "alembic.command", "dagster", "dagster._core.execution.execute_in_process", "dagster._core.executor.in_process",
    "dagster._core.instance.runs", "dagster._core.storage.base_storage",
    "dagster._core.storage.local_compute_log_manager", "deltalake", "fastapi", "jinja2", "kuzu",
    "matplotlib.backends.backend_svg", "matplotlib.figure", "mcp.server", "msgspec", "numpy", "polars",
    "polars_hash", "pyarrow.compute", "pyarrow.parquet", "scipy.cluster.hierarchy", "scipy.sparse.csgraph",
    "sentence_transformers", "sklearn.feature_extraction.text", "sklearn.linear_model", "sqlalchemy.dialects.sqlite",
    "torch", "transformers.models.bert.modeling_bert", "typer.rich_utils", "upath", "uvicorn",
):  # fmt: skip
    with contextlib.suppress(ImportError):  # an extra that is not installed
        importlib.import_module(name)
for package in (memstate_core, memstate_pipeline):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
hurried()


def first_use() -> None:
    """Does what each command or night would do first: makes the command line's parsers, loads the model, fonts and the
    report's template, reads Dagster's schema.

    Nothing here computes with Polars, Kuzu, torch or OpenVINO, whose threads would be missing in the forked processes:
    OpenVINO's graph is made here and compiled there.
    """
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(app)
    sentence_model.load = functools.cache(sentence_model.load)
    sentence_model.load(sentence_model.PACKAGED_MODEL, "cpu")
    openvino_model.bert_graph = functools.cache(openvino_model.bert_graph)
    openvino_model.bert_graph(sentence_model.model_folder(sentence_model.PACKAGED_MODEL))
    plots._svg("first", "Two panels", lambda figure: figure.subplots(2))
    templates.environment().get_template("page.html")
    with tempfile.TemporaryDirectory() as folder, dagster_instance(Home(Path(folder))):
        build_defs(Path(folder)).resolve_job_def(NIGHTLY)


with contextlib.redirect_stderr(io.StringIO()):  # progress bars
    first_use()
gc.freeze()
gc.enable()
into_huge_pages()
