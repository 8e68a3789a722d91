"""Where a model lies on this machine: the packaged one, a folder, or one in the local cache of the Hugging Face Hub.

Invariant: nothing is downloaded, and no other machine is asked.
"""

from __future__ import annotations

import re
from pathlib import Path

from memstate_core.embed.sentence_model import PACKAGED_MODEL, model_folder
from memstate_core.model.errors import ModelUnavailable

_ON_HUB = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_USUAL_OWNER = "sentence-transformers"
"""Whose a model is whose name has no owner."""


def found_model(model: str, base: Path | None = None) -> str:
    """The packaged model, or the folder of another, as the runtimes take it.

    Args:
        model: the packaged model, the path of a folder, or the name of a model in the local cache of the Hub.
        base: where a relative path begins; None for the working directory.

    Raises:
        ModelUnavailable: it is not on this machine; the message names the folder that was looked for.
    """
    if model == PACKAGED_MODEL:
        return model
    folder = (base or Path()) / model_folder(model)
    if folder.is_dir():
        return str(folder)
    cached = _in_hub_cache(model)
    if cached is None:
        raise ModelUnavailable(model, f"{folder.absolute()} is no folder{_not_cached(model)}")
    return str(cached)


def _in_hub_cache(model: str) -> Path | None:
    """The folder of a model that was downloaded before."""
    if not _ON_HUB.fullmatch(model):
        return None
    from huggingface_hub import try_to_load_from_cache

    name = model if "/" in model else f"{_USUAL_OWNER}/{model}"
    try:
        found = try_to_load_from_cache(name, "config.json")
    except ValueError:  # a name that the Hub does not allow
        return None
    return Path(found).parent if isinstance(found, str) else None


def _not_cached(model: str) -> str:
    if not _ON_HUB.fullmatch(model):
        return ""
    from huggingface_hub.constants import HF_HUB_CACHE

    return f", {HF_HUB_CACHE} has no model of this name, and nothing is downloaded"
