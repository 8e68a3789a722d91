"""Accesses: recorded reads of topics, journalled by readers and collected into the ledger exactly once."""
