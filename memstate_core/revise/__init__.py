"""Revising what is known: duplicates found and merged, and what depends on a change queued for review."""
