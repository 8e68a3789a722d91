"""HTTP: routes, request bodies, authentication, rate limits. Thin over `serve.reading` and `serve.service`."""
