"""Interruptions (Ctrl-C, SIGTERM) that arrive where they can be raised.

A signal handler runs wherever Python happens to be. Where Rust has called back into Python, an exception that it raises
ends in a panic with a backtrace; in a finalizer, Python prints the exception and goes on without it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_RETRY_S = 0.01
_LIBRARIES = ("polars", "deltalake")


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Delays the current handlers of SIGINT and SIGTERM while a call of Polars or Delta Lake is in progress.

    A signal is sent again after such a call, and if a finalizer has swallowed what its handler raised. Only the main
    thread handles signals, so in other threads nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with ExitStack() as undo:
        delayed = [_Delayed(number, undo) for number in (signal.SIGINT, signal.SIGTERM)]
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):  # the interruption has arrived
                for each in delayed:
                    each.cancel()
            raise


class _Delayed:
    """The handler of one signal, unless the signal is ignored or left to the system; undone by `undo`."""

    def __init__(self, number: signal.Signals, undo: ExitStack) -> None:
        self._number, self._handler, self._hook = number, signal.getsignal(number), sys.unraisablehook
        self._raised: list[BaseException] = []
        self._again: list[threading.Timer] = []
        if callable(self._handler):
            signal.signal(number, self._handle)
            undo.callback(signal.signal, number, self._handler)
            sys.unraisablehook = self._unraisable
            undo.callback(setattr, sys, "unraisablehook", self._hook)

    def cancel(self) -> None:
        """Sends the signal no more."""
        for timer in self._again:
            timer.cancel()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if _in_library(frame):
            self._send_again()
        elif callable(self._handler):
            try:
                self._handler(number, frame)
            except BaseException as error:
                self._raised.append(error)
                raise

    def _unraisable(self, event: UnraisableHookArgs) -> None:
        if any(event.exc_value is error for error in self._raised):
            self._send_again()
        else:
            self._hook(event)

    def _send_again(self) -> None:
        again = threading.Timer(_RETRY_S, os.kill, (os.getpid(), self._number))
        again.daemon = True
        self._again.append(again)
        again.start()


def _in_library(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _LIBRARIES:
            return True
        frame = frame.f_back
    return False
