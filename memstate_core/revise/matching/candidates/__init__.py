"""Candidate pairs: blocking, and the search for nearest neighbours."""
