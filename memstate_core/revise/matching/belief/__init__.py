"""Belief: whether the fit may be relied on, and what agrees by chance."""
