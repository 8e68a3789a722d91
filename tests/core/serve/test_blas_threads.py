"""Products of vectors in a server run on the thread that asks for them."""

from __future__ import annotations

import json

import pytest

from tests import warm
from tests.pipeline.conftest import clean_environment

THREADS = """
import numpy
from threadpoolctl import threadpool_info, threadpool_limits
from memstate_core.serve import server

class Running:
    handle_exit = None

    def run(self, sockets):
        print([each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"])

threadpool_limits(2, user_api="blas")
Running().run([])
server.server, server.signal.signal = lambda *_: Running(), lambda *_: None
server.run(None, None, server.Options())
"""


@pytest.mark.slow
def test_a_server_does_not_share_products_among_threads() -> None:
    done = warm.run(["-c", THREADS], clean_environment())
    before, while_serving = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    assert set(before) == {2}
    assert set(while_serving) == {1}
