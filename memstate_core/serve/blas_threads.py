"""Products of vectors in a server: on the thread that asks for them."""

from __future__ import annotations

from threadpoolctl import threadpool_limits


def on_one_thread() -> None:
    """Keeps the linear algebra library of this process from sharing a product among threads.

    The product of a question with the vectors of a scope takes less than a millisecond. Shared, each thread waits for
    the others to get a processor, and requests that run at the same time wait for each other. It applies to libraries
    that are loaded, so numpy has to be imported before.
    """
    threadpool_limits(1, user_api="blas")
