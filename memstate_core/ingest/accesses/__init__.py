"""Accesses: recorded reads of topics, journalled by whoever answers and collected into the ledger exactly once."""
