"""A typed client of a memstate server: `MemoryClient`, and `AsyncMemoryClient` with the same methods awaited.

    with MemoryClient() as memory:
        memory.ingest({"scope": {"type": "user", "id": "aya"}, "text": "We moved the Acme call to Friday."})
        for candidate in memory.query("When is the Acme call?", scope="user:aya").candidates:
            print(candidate.title)

Install it with `pip install 'memstate[client]'`; it imports nothing of the pipeline. Every error is an `ApiError` of
`memstate_core.model.errors`, and answers have the types of `memstate_core.model.answers`.
"""

from memstate_core.client.clients import AsyncMemoryClient, MemoryClient
from memstate_core.client.exchange import Retry

__all__ = ["AsyncMemoryClient", "MemoryClient", "Retry"]
