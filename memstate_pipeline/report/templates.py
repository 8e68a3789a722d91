"""The templates of the pages; values are escaped, and a name that is not given is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from memstate_pipeline.report.format import counted, duration, is_refusing, moment, number, score


@cache
def environment() -> Environment:
    """The environment of all pages, with the filters of `memstate_pipeline.report.format`."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        function.__name__: function for function in (number, score, duration, moment, counted, is_refusing)
    }
    return made
