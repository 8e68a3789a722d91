"""Evaluation: how good answers and packs are, over questions with marked evidence."""
