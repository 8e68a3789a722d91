"""Erasure: removes a subject from the ledger, from what follows from it, and from the files of the home (law L8)."""
