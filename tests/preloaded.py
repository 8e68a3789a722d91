"""Loads memstate and the libraries that its commands load; `tests.warm` forks processes from one that did this."""

from __future__ import annotations

import contextlib
import gc
import importlib
import pkgutil

import memstate_core
import memstate_pipeline
from tests.run_history import hurried

for name in (
    "alembic.command", "dagster", "dagster._core.executor.in_process", "dagster._core.storage.base_storage",
    "dagster._core.storage.local_compute_log_manager", "deltalake", "fastapi", "jinja2", "kuzu",
    "matplotlib.backends.backend_svg", "matplotlib.figure", "mcp.server", "msgspec", "numpy", "polars", "polars_hash",
    "pyarrow.compute", "pyarrow.parquet", "scipy.cluster.hierarchy", "scipy.sparse.csgraph", "sentence_transformers",
    "sklearn.feature_extraction.text", "sklearn.linear_model", "sqlalchemy.dialects.sqlite", "torch",
    "transformers.models.bert.modeling_bert", "typer.rich_utils", "upath", "uvicorn",
):  # fmt: skip
    with contextlib.suppress(ImportError):  # an extra that is not installed
        importlib.import_module(name)
for package in (memstate_core, memstate_pipeline):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
hurried()
gc.freeze()
