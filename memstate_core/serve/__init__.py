"""The query API: published snapshots over HTTP, and what arrives between two nights kept for the next one.

It never writes to ledger or snapshots. Observations go to the inbox, uses to the journal of uses; the next
run takes both.
"""
