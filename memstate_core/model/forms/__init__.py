"""The forms of `memory` in an observation: one module a form, and the registry that everything else derives from."""
