"""An embedding model or a language model cannot be used."""

from __future__ import annotations

from memstate_core.model.errors.base import MemstateError


class ModelUnavailable(MemstateError):
    """The embedding model cannot be loaded."""

    def __init__(self, model: str, problem: str) -> None:
        super().__init__(
            f"embedding model {model!r} cannot be loaded: {problem}. Expected a model on this machine: "
            "its folder, which a relative path names from the home, or its name in the local cache of the Hugging Face "
            "Hub; the packaged default is 'all-MiniLM-L6-v2'. Set embedding.model in memstate.toml.",
            model=model,
            problem=problem,
        )


class EncoderEndpointFailed(ModelUnavailable):
    """The endpoint of the embedding model gives no vectors."""

    def __init__(self, model: str, endpoint: str, problem: str) -> None:
        MemstateError.__init__(
            self,
            f"the embedding model {model!r} at {endpoint} gives no vectors: {problem}. What it gave so far is kept, so "
            "run the same again when that has changed, or set another embedding.endpoint in memstate.toml.",
            model=model,
            endpoint=endpoint,
            problem=problem,
        )


class DimensionMismatch(MemstateError):
    """An embedding model gives vectors of another dimension than expected."""

    def __init__(self, model: str, found: int, expected: int, where: str) -> None:
        super().__init__(
            f"embedding model {model!r} gives vectors of {found} dimensions, expected {expected} as in {where}. "
            "If the model at this place was replaced, give the new one a name of its own (another folder) and set "
            "embedding.model to it; the next run embeds every topic again.",
            model=model,
            found=found,
            expected=expected,
            where=where,
        )


class ExtractorUnavailable(MemstateError):
    """A language model is configured that this installation cannot use."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(
            f"the language model of [extractor] cannot be used: {problem}. {remedy}, or remove the section from "
            "memstate.toml to run without it.",
            problem=problem,
            remedy=remedy,
        )
