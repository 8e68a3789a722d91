"""A typed client of a memstate server: `MemoryClient`, and `AsyncMemoryClient` with the same methods awaited.

    with MemoryClient() as memory:
        memory.ingest({"scope": {"type": "user", "id": "aya"}, "text": "We moved the Acme call to Friday."})
        for candidate in memory.query("When is the Acme call?", scope="user:aya").candidates:
            print(candidate.title)

It needs `pip install 'memstate[client]'` and loads nothing of the pipeline. Errors are the branch `ApiError` of
`memstate_core.model.errors`.
"""

from memstate_core.client.clients import AsyncMemoryClient, MemoryClient
from memstate_core.client.exchange import Retry

__all__ = ["AsyncMemoryClient", "MemoryClient", "Retry"]
