"""A snapshot's index: topics, evidence, vectors and term counts, laid out by scope."""
