"""API keys and principals: who calls, which scopes they see, what they may do."""
