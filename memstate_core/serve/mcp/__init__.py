"""The Model Context Protocol server. Thin over `serve.reading` and `serve.service`."""
