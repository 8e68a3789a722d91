"""The argument `memory` of the tool that writes: every form of the registry, with the descriptions of its keys."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, create_model

from memstate_core.model.forms.form import Form
from memstate_core.model.forms.registry import FORMS


def _given(form: type[Form]) -> Any:
    """The form as a model that refuses unknown keys."""
    keys: dict[str, Any] = {
        key.name: (key.type, Field(*[...] if key.required else [None], description=_sentence(key.description)))
        for key in form.keys()  # noqa: SIM118, no mapping
    }
    own: Any = Literal[form.form()]
    doc = (form.__doc__ or "").partition("\n")[0]
    return create_model(
        f"{form.__name__}Given", __config__=ConfigDict(extra="forbid"), __doc__=doc, type=(own, ...), **keys
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


if TYPE_CHECKING:
    MemoryGiven: TypeAlias = BaseModel | None
else:
    MemoryGiven = Annotated[
        reduce(or_, map(_given, FORMS)) | None,
        Field(
            description="Write a "
            + ", ".join(form.NOUN for form in FORMS)
            + "; beside nothing else but text, actor, session and time."
        ),
    ]
"""Any form, or none."""
