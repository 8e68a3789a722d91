"""Titles, summaries and key phrases taken from the text itself, without a language model."""
