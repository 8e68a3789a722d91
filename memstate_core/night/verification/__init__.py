"""Verification of what memories note: one module a checker, and the step that records what they find."""
