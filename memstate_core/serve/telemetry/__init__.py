"""Logs, counters and traces of a server."""
