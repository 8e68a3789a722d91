"""The forms that `memory` of an observation can have.

Validation, limits, placement, matching, forgetting, the checks of a night, the tools of a model and the documentation
derive from it: a further form is one module beside this one and its name in the union below.
"""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

from memstate_core.model.forms.core_block import CoreBlock
from memstate_core.model.forms.fact import StatedFact
from memstate_core.model.forms.form import Form
from memstate_core.model.forms.relation import Relation
from memstate_core.model.forms.resource import Resource
from memstate_core.model.forms.session_state import SessionState
from memstate_core.model.forms.verification import Verification

Memory: TypeAlias = CoreBlock | SessionState | Resource | StatedFact | Relation | Verification
"""Any form; `type` in the record says which."""

FORMS: Final[tuple[type[Form], ...]] = get_args(Memory)

FORM_KINDS: Final[tuple[str, ...]] = tuple(form.topic_kind() for form in FORMS)
"""The kinds of topics that only forms write."""

SPARED_KINDS: Final[tuple[str, ...]] = tuple(form.topic_kind() for form in FORMS if form.SPARED)
"""Those among them that are never summarised, detached or archived."""
