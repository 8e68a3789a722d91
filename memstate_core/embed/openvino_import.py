"""OpenVINO without its telemetry.

OpenVINO reports that it was imported to a service for statistics, from a thread that forks this process. Nothing is
sent anywhere from a store of memories unasked. The fork was also a danger: it inherits the locks of open graphs without
the threads that release them, and a process that waits for such a fork when it ends may wait for ever.
"""

from __future__ import annotations

import sys
from typing import Any

_TELEMETRY = "openvino_telemetry"
"""The package that reports; where it cannot be imported, OpenVINO has a stand-in that does nothing."""


def openvino() -> Any:
    """The package `openvino`.

    Raises:
        ImportError: it is not installed.
    """
    modules: dict[str, Any] = sys.modules
    modules.setdefault(_TELEMETRY, None)  # Python's way to say that a module cannot be imported
    import openvino

    return openvino
