"""Read-your-writes: what was accepted and is not published yet, laid over the answers."""
