"""Signals reach the code at places where they can be raised.

A process that sends itself signals is one of its own: a late one would end the worker that runs the tests.
"""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from memstate_core.state.process.interrupts import delayed_interrupts

ROOT = Path(__file__).parents[4]


def in_a_process_of_its_own(test: Callable[..., None]) -> Callable[..., None]:
    """Runs a test in a new process, which has to end well and to print nothing."""

    @functools.wraps(test)
    def run(**given: int) -> None:
        name, numbers = test.__name__, {name: int(number) for name, number in given.items()}
        code = f"import {__name__} as tests; tests.{name}.__wrapped__(**{numbers})"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")

    return run


def call_and_wait(call: Callable[[], object]) -> None:
    with delayed_interrupts():
        call()
        time.sleep(30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@in_a_process_of_its_own
def test_a_signal_within_a_call_of_polars_is_handled_after_it(number: signal.Signals) -> None:
    returned: list[int] = []

    class Ended(BaseException):
        pass

    def end(*_: object) -> None:
        raise Ended

    def interrupted(value: int) -> int:
        signal.raise_signal(number)
        returned.append(value)
        return value

    before = signal.signal(number, end)
    try:
        with pytest.raises(Ended):
            call_and_wait(lambda: pl.Series([7]).map_elements(interrupted, return_dtype=pl.Int64))
        assert returned == [7]
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)


@in_a_process_of_its_own
def test_a_signal_that_a_finalizer_swallows_is_sent_again() -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        call_and_wait(Finalized)


@in_a_process_of_its_own
def test_an_interruption_that_has_arrived_is_not_sent_again() -> None:
    """Both a finalizer and the block itself are interrupted; the second ends the block before the first is repeated."""

    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def interrupt_twice() -> None:
        Finalized()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        call_and_wait(interrupt_twice)
    time.sleep(0.1)


def test_other_unraisable_errors_are_reported_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    class Finalized:
        def __del__(self) -> None:
            raise ValueError("of the finalizer")

    hook = sys.unraisablehook
    sys.unraisablehook = sys.__unraisablehook__
    try:
        with delayed_interrupts():
            Finalized()
        assert sys.unraisablehook is sys.__unraisablehook__
    finally:
        sys.unraisablehook = hook
    assert "ValueError: of the finalizer" in capfd.readouterr().err


@in_a_process_of_its_own
def test_a_signal_outside_a_library_is_handled_at_once() -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the interruption came late")

    with pytest.raises(KeyboardInterrupt):
        call_and_wait(interrupt)


def test_other_threads_go_on_unchanged() -> None:
    before = signal.getsignal(signal.SIGINT)

    def work() -> None:
        with delayed_interrupts():
            assert signal.getsignal(signal.SIGINT) is before

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("guard", "raised"), [("delayed_interrupts", "KeyboardInterrupt"), ("nullcontext", "PanicException")]
)
def test_no_interruption_ends_in_a_panic(guard: str, raised: str, tmp_path: Path) -> None:
    """Polars unwraps the result of a call that it makes once per process, so the test needs a new one."""
    code = f"""
        import signal, sys, time
        from contextlib import nullcontext
        import polars as pl
        from memstate_core.state.process.interrupts import delayed_interrupts

        pl.DataFrame({{"a": [1]}}).write_parquet(sys.argv[1])
        sent = []

        def interrupt(frame, event, argument):
            if event == "call" and frame.f_code.co_filename.endswith("cast_options.py") and not sent:
                sent.append(signal.raise_signal(signal.SIGINT))

        try:
            with {guard}():
                sys.setprofile(interrupt)
                pl.read_parquet(sys.argv[1])
                sys.setprofile(None)
                time.sleep(30)
        except BaseException as error:
            print(type(error).__name__)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "one.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == raised
