"""Errors of commands: one message on stderr, a JSON document where it was asked for, and an exit code.

No traceback reaches stderr unless `--debug` is given.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import typer

from memstate_core.model.errors import MemstateError, TopicNotFound
from memstate_pipeline.cli.shared.output import Context, note, show_json

FAILED, INTERRUPTED = 1, 130
_ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some disk space and run the command again."),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Check the permissions, or pass another --home DIR."),
    errno.EROFS: "The file system is read-only; pass another --home DIR.",
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), "A file is where a folder is expected; check the path."),
    errno.ENOENT: "Check the path.",
}
_WORDING = (
    ("Value error, ", ""),
    (", unable to parse string as an integer", ""),
    (", unable to parse string as a number", ""),
    ("Input should be a valid", "expected a valid"),
    ("Input should be greater", "expected a number greater"),
    ("Input should be less", "expected a number less"),
    ("Input should be", "expected"),
)
_MEMORY = (
    "more memory was needed than the system has or store.memory_mib allows; what was not published or acknowledged "
    "has no effect. Raise store.memory_mib in memstate.toml, or leave memory to this command, and run it again."
)


@dataclass(frozen=True)
class Failure:
    """How a command failed.

    Attributes:
        kind: the type of the error.
        message: what was found, what was expected, what to do next.
        exit_code: the status of the process.
        facts: details for scripts.
        usage: lines that explain the usage of the command, printed before the message.
    """

    kind: str
    message: str
    exit_code: int = FAILED
    facts: Mapping[str, Any] = field(default_factory=dict)
    usage: tuple[str, ...] = ()


class Boundary:
    """A context manager around a command that turns every exception into a message and an exit code.

    Args:
        options: whether to show tracebacks; read when an error leaves the block.
        as_json: print the error as a JSON document on stdout, too.
    """

    def __init__(self, options: Context, as_json: bool) -> None:
        self._options, self._as_json = options, as_json

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, SystemExit):
            return
        if isinstance(error, BrokenPipeError):
            _discard_output()
            raise SystemExit(FAILED) from None
        failure = described(error)
        if self._options.debug:
            traceback.print_exception(error)
        report(failure, self._as_json)
        raise SystemExit(failure.exit_code) from None


def report(failure: Failure, as_json: bool) -> None:
    """Prints a failure."""
    for line in failure.usage:
        note(line)
    note(f"memstate: {failure.message}")
    if as_json:
        document = {"type": failure.kind, "message": failure.message, "exit_code": failure.exit_code, **failure.facts}
        _show_where_possible({"error": document})


def missing_extra(error: ImportError, extra: str) -> Failure:
    """The failure of a command whose packages are not installed."""
    return Failure("ImportError", f"{error}; install the missing packages: pip install 'memstate[{extra}]'")


def described(error: BaseException) -> Failure:
    """The message and exit code of an exception."""
    kind = type(error).__name__
    if _is_interrupt(error):
        return Failure("KeyboardInterrupt", "interrupted", INTERRUPTED)
    if isinstance(error, MemstateError):
        advice = " `memstate export` lists every id." if isinstance(error, TopicNotFound) and error.needs_list else ""
        return Failure(kind, error.message + advice, error.exit_code, error.facts)
    if isinstance(error, _UsageError):
        return _wrong_usage(kind, error)
    if isinstance(error, typer.Abort):
        return Failure(kind, "cancelled; nothing was changed")
    if isinstance(error, MemoryError):
        return Failure(kind, _MEMORY)
    if isinstance(error, OSError) and error.strerror:
        return Failure(kind, " ".join(_of_the_system(error)))
    problem = next(iter(str(error).splitlines()), "")
    advice = "`memstate doctor` and `memstate verify` look for the cause; `memstate --debug …` shows the traceback."
    return Failure(kind, f"unexpected {kind}{f': {problem}' if problem else ''}. {advice}")


@runtime_checkable
class _UsageError(Protocol):
    """What typer raises for wrong usage; it exports none of the base classes."""

    exit_code: int
    ctx: typer.Context | None

    def format_message(self) -> str: ...


def _wrong_usage(kind: str, error: _UsageError) -> Failure:
    message, context = _in_words(error.format_message()), error.ctx
    if context is not None and message == context.get_help():  # of a group without a command
        return Failure(kind, "missing command", error.exit_code, usage=(message,))
    usage = () if context is None else (context.get_usage(), f"Try '{context.command_path} --help' for help.")
    is_unlike_any = kind == "NoSuchOption" and not getattr(error, "possibilities", None)
    hint = _after_dashes(context) if is_unlike_any and context is not None else ""
    return Failure(kind, message + hint, error.exit_code, usage=usage)


def _after_dashes(context: typer.Context) -> str:
    """How to write an argument that looks like an option; nothing for a command that takes no arguments."""
    arguments = [each for each in context.command.params if each.param_type_name == "argument"]
    if not arguments:
        return ""
    named = " ".join(context.command.collect_usage_pieces(context)[1:]).replace("{", "").replace("}", "")
    return f". Where an argument begins with -, write -- before it: `{context.command_path} -- {named}`"


def _in_words(message: str) -> str:
    """A message of typer without the wording of the library that validates its values."""
    for found, said in _WORDING:
        message = message.replace(found, said)
    return message


def _of_the_system(error: OSError) -> Iterator[str]:
    where = f"{error.filename}: " if error.filename is not None else ""
    yield f"{where}{error.strerror}."
    if error.errno in _ADVICE:
        yield _ADVICE[error.errno]


def _is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is the cause; Dagster and prompts wrap it in errors of their own."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return False


def _show_where_possible(document: Mapping[str, Any]) -> None:
    """Prints a document, unless stdout takes nothing, which may be the failure itself: the message is on stderr."""
    try:
        show_json(document)
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Closes stdout so that the interpreter's last flush does not fail again."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
