"""The query API: serves published snapshots over HTTP and MCP, and accepts writes for the next run.

It never writes to the ledger or to snapshots: observations go to the inbox and accesses to the access journal, and the
next run collects both.
"""
