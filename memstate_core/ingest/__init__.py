"""The operator *ingest*: dumps become evidence in the ledger; bad rows go to quarantine with the reason."""
