"""Requests to OpenAI-compatible endpoints: the connection, what failed, which requests are repeated, the budget."""
