"""Makes the parts of the documentation that follow from the code: reference tables, pictures, screenshots.

What does not belong here is prose, which lies in `docs/pages`. A page names a generated part by a line
`<!-- generated: NAME -->`, which the build replaces (`docs/hooks.py`), so a reference page cannot go stale.
"""
