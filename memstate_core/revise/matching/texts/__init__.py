"""Texts of topics: tokens, units, marks, and values read as numbers, dates and moments."""
