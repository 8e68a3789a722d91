"""What the build of the site does beside rendering: it puts generated parts where pages name them.

Build from the root of the repository, which `python -m mkdocs` puts on the import path.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from docs.make import columns
from docs.make.commands import commands, global_options
from docs.make.errors import errors
from docs.make.forms import form_keys
from docs.make.limits import limits
from docs.make.routes import routes, schemas
from docs.make.settings import default_file, settings, variables
from memstate_core.model.forms.registry import FORMS

PARTS = (
    {
        "commands": commands,
        "global options": global_options,
        "errors": errors,
        "limits": limits,
        "routes": routes,
        "schemas": schemas,
        "settings": settings,
        "default settings": default_file,
        "variables": variables,
    }
    | columns.PARTS
    | {f"keys of {form.form()}": partial(form_keys, form) for form in FORMS}
)
_MARKER = re.compile(r"^<!-- generated: (.+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replaces the markers of a page.

    Raises:
        KeyError: a page names a part that nothing makes.
    """
    return _MARKER.sub(lambda marker: PARTS[marker[1]](), markdown)
