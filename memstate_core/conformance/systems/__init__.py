"""Adapters: memstate over HTTP, two naive stores, and mem0 with its local parts. One module each."""
