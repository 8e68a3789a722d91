"""Comparison of pairs: levels of agreement, sources, and what contradicts."""
