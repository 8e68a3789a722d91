"""Import: turns a second into the ledger by format, with and without the encoder, and memory as an export grows.

The same made turns (`generate.py`) are written in each format and imported by the product's own `import_paths`, each
file into a fresh ledger in a process of its own, so that the peak of its memory is that file's alone. Then exports of
growing size: what a reader holds must not grow with them; what an import keeps of each accepted observation,
24 bytes, may. Last, a small dump is imported and one night is run, which measures the encoder.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import generate
import polars as pl

from memstate_core.ingest.importer import import_paths
from memstate_core.policy.settings import Settings
from memstate_core.state.ledger.ledger import Ledger

SESSION = 30
"""Turns of a conversation, where a format has conversations."""
VARIETY = 50_000
"""Number of different texts; further turns repeat them with their number in front."""
GROWING = ("observations", "chatgpt", "slack")
Said = tuple[int, str]
"""The number of a turn and its text."""


# --- files


def said(count: int | None, seed: int) -> Iterator[Said]:
    """So many turns, or turns without end."""
    spec = generate.Spec(VARIETY, 1, 4, seed)
    texts = [json.loads(line)["text"] for chunk in generate.turn_chunks(spec) for line in chunk]
    number = 0
    while count is None or number < count:
        yield number, f"{number}: {texts[number % VARIETY]}"
        number += 1


def _role(number: int) -> str:
    return "assistant" if number % 2 else "user"


def _epoch(number: int) -> int:
    return 1_700_000_000 + number


def _clock(number: int) -> str:
    return f"{datetime.fromtimestamp(_epoch(number), UTC):%Y-%m-%dT%H:%M:%SZ}"


def _observation(number: int, text: str) -> dict[str, Any]:
    where = {
        "scope": {"type": "user", "id": "bench"},
        "session_id": f"chat-{number // SESSION}",
        "turn": number % SESSION,
    }
    kind = {"kind": f"{_role(number)}_message", "actor": _role(number), "observed_at": _clock(number)}
    return {"observation_id": f"bench/{number}", **where, **kind, "text": text}


def _chatgpt(turns: Sequence[Said]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for at, (number, text) in enumerate(turns):
        message = {
            "id": f"m{number}",
            "author": {"role": _role(number)},
            "create_time": _epoch(number),
            "content": {"content_type": "text", "parts": [text]},
        }
        parent = f"m{turns[at - 1][0]}" if at else None
        children = [f"m{turns[at + 1][0]}"] if at + 1 < len(turns) else []
        mapping[f"m{number}"] = {"id": f"m{number}", "message": message, "parent": parent, "children": children}
    first = turns[0][0]
    return {"title": f"Chat {first}", "id": f"c{first}", "current_node": f"m{turns[-1][0]}", "mapping": mapping}


def _claude(turns: Sequence[Said]) -> dict[str, Any]:
    messages = [
        {"uuid": f"m{number}", "text": text, "created_at": _clock(number), "content": [{"type": "text", "text": text}]}
        | {"sender": "assistant" if number % 2 else "human"}
        for number, text in turns
    ]
    return {"uuid": f"c{turns[0][0]}", "name": f"Chat {turns[0][0]}", "chat_messages": messages}


def _claude_code(number: int, text: str) -> dict[str, Any]:
    role = _role(number)
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    where = {"sessionId": f"s{number // SESSION}", "timestamp": _clock(number), "cwd": "/bench"}
    return {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", **where, "message": message}


def _codex(number: int, text: str) -> dict[str, Any]:
    payload = {"type": "message", "role": _role(number), "content": [{"type": "input_text", "text": text}]}
    return {"timestamp": _clock(number), "type": "response_item", "payload": payload}


def _sharegpt(turns: Sequence[Said]) -> dict[str, Any]:
    messages = [{"from": "gpt" if number % 2 else "human", "value": text} for number, text in turns]
    return {"id": f"c{turns[0][0]}", "conversations": messages}


def _openai(turns: Sequence[Said]) -> dict[str, Any]:
    return {"messages": [{"role": _role(number), "content": text} for number, text in turns]}


def _array(items: Iterable[Any]) -> Iterator[bytes]:
    for at, item in enumerate(items):
        yield (b",\n" if at else b"[") + json.dumps(item).encode()
    yield b"]"


def _lines(items: Iterable[Any]) -> Iterator[bytes]:
    return (json.dumps(item).encode() + b"\n" for item in items)


def _singly(one: Callable[[int, str], Any]) -> Callable[[Iterable[Said]], Iterator[bytes]]:
    return lambda turns: _lines(one(*turn) for turn in turns)


def _whatsapp(turns: Iterable[Said]) -> Iterator[bytes]:
    for number, text in turns:
        at = datetime.fromtimestamp(_epoch(number), UTC)
        yield f"[{at:%d/%m/%Y, %H:%M:%S}] {_role(number).title()}: {text}\n".encode()


def _groups(turns: Iterable[Said], size: int = SESSION) -> Iterator[list[Said]]:
    rest = iter(turns)
    while group := list(islice(rest, size)):
        yield group


BODIES: dict[str, tuple[str, Callable[[Iterable[Said]], Iterator[bytes]]]] = {
    "observations": (".jsonl", _singly(_observation)),
    "chatgpt": (".json", lambda turns: _array(map(_chatgpt, _groups(turns)))),
    "claude": (".json", lambda turns: _array(map(_claude, _groups(turns)))),
    "claude-code": (".jsonl", _singly(_claude_code)),
    "codex": (".jsonl", _singly(_codex)),
    "sharegpt": (".json", lambda turns: _array(map(_sharegpt, _groups(turns)))),
    "openai": (".jsonl", lambda turns: _lines(map(_openai, _groups(turns)))),
    "whatsapp": (".txt", _whatsapp),
}
"""The ending of each format's file, and its bytes from turns."""


def write_dump(folder: Path, format: str, turns: Iterable[Said], most: float = float("inf")) -> Path:
    """Writes an export of a format, ending once it has so many bytes; `parquet` is one of observations."""
    if format == "slack":
        return _slack(folder / "slack.zip", turns, most)
    if format == "parquet":
        pl.DataFrame([_observation(*turn) for turn in turns]).write_parquet(folder / "turns.parquet")
        return folder / "turns.parquet"
    suffix, body = BODIES[format]
    path = folder / f"{format}{suffix}"
    written = 0

    def until_full() -> Iterator[Said]:
        for turn in turns:
            if written >= most:
                return
            yield turn

    with path.open("wb", buffering=1 << 20) as file:
        for piece in body(until_full()):
            written += file.write(piece)
    return path


def _slack(path: Path, turns: Iterable[Said], most: float) -> Path:
    """A day of one channel for each 10,000 messages; stored, so that it has the size that is asked for."""
    users = [{"id": "U0", "name": "ada"}, {"id": "U1", "name": "bruno"}]
    written = 0
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("users.json", json.dumps(users))
        archive.writestr("channels.json", json.dumps([{"id": "C0", "name": "bench"}]))
        for at, day in enumerate(_groups(turns, 10_000)):
            messages = [
                {"type": "message", "user": f"U{number % 2}", "text": text, "ts": f"{_epoch(number)}.000100"}
                for number, text in day
            ]
            content = json.dumps(messages)
            archive.writestr(f"bench/{2000 + at // 336:04}-{at // 28 % 12 + 1:02}-{at % 28 + 1:02}.json", content)
            written += len(content)
            if written >= most:
                break
    return path


# --- measuring


def imported(path: Path) -> dict[str, Any]:
    """Imports a file into a fresh ledger in a process of its own; what that process prints."""
    with tempfile.TemporaryDirectory(dir=path.parent) as home:
        command = [sys.executable, __file__, "--one", str(path), home]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def import_one(path: Path, home: Path) -> dict[str, Any]:
    """Imports a file here; rows, seconds, and mebibytes before and at the peak."""
    settings = Settings()
    ledger = Ledger(home / "ledger", settings.store.lock_wait_seconds)
    before = _peak_mib()
    began, spent = time.perf_counter(), time.process_time()
    report = import_paths(ledger, settings, [path], now=datetime(2026, 2, 1, tzinfo=UTC), run_id="bench")
    seconds, cpu = time.perf_counter() - began, time.process_time() - spent
    assert not report.errors, report.errors
    assert report.read == report.accepted, report.to_json()
    found = {"rows": report.accepted, "seconds": seconds, "cpu": cpu, "format": report.files[0].format}
    return found | {"before": before, "peak": _peak_mib()}


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speeds(folder: Path, rows: int, seed: int) -> str:
    """A line a format: turns a second, beside JSON Lines, and memory."""
    lines = ["| format | turns | seconds | turns/s | CPU s | beside JSON Lines | peak MiB |", "|" + "---|" * 7]
    base = 0.0
    for format in ("observations", "parquet", *list(BODIES)[1:], "slack"):
        path = write_dump(folder, format, said(rows, seed))
        found = imported(path)
        path.unlink()
        assert found["format"] == ("observations" if format == "parquet" else format), found
        rate = found["rows"] / found["seconds"]
        base = base or rate
        counts = f"{found['rows']:,} | {found['seconds']:.2f} | {rate:,.0f} | {found['cpu']:.2f}"
        lines.append(f"| {format} | {counts} | {rate / base:.2f} | {found['peak']:.0f} |")
    return "\n".join(lines)


def growth(folder: Path, sizes: Sequence[float], seed: int) -> str:
    """A line a format and size: peak memory, and how much of it the observations taken account for."""
    heads = "| format | GiB | turns | turns/s | MiB before | peak MiB | 24 bytes a turn, MiB |"
    lines = [heads, "|" + "---|" * 7]
    for format in GROWING:
        for size in sizes:
            path = write_dump(folder, format, said(None, seed), size * (1 << 30))
            found, real = imported(path), path.stat().st_size / (1 << 30)
            path.unlink()
            rate, known = found["rows"] / found["seconds"], 24 * found["rows"] / (1 << 20)
            memory = f"{found['before']:.0f} | {found['peak']:.0f} | {known:.0f}"
            lines.append(f"| {format} | {real:.2f} | {found['rows']:,} | {rate:,.0f} | {memory} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


def all_the_way(folder: Path, format: str, rows: int, seed: int) -> tuple[float, dict[str, Any]]:
    """Seconds from file to published snapshot, all vectors made, and the summary of the night."""
    path, home = write_dump(folder, format, said(rows, seed)), folder / "home"
    program = [sys.executable, "-m", "memstate_pipeline", "--home", str(home)]
    began = time.perf_counter()
    subprocess.run([*program, "import", str(path), "--json"], check=True, stdout=subprocess.DEVNULL)
    night = [*program, "maintain", "--now", "2026-02-01T00:00:00Z", "--json"]
    summary = json.loads(subprocess.run(night, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return time.perf_counter() - began, summary


def encoded(folder: Path, rows: int, seed: int) -> str:
    """Turns a second from file to published snapshot."""
    seconds, summary = all_the_way(folder, "observations", rows, seed)
    placing = summary["seconds"]["placements"]
    return (
        f"{rows:,} turns imported, placed, embedded and published in {seconds:.0f} s: {rows / seconds:.0f} turns/s "
        f"({placing:.0f} s of it placements, where turns are embedded; {summary['counts']['topics_created']:,} topics)."
    )


def main(given: Sequence[str] | None = None) -> None:
    """Prints the tables that the arguments ask for."""
    parser = argparse.ArgumentParser(description="Measure imports: speed by format, memory by size, the encoder.")
    parser.add_argument("--rows", type=int, default=100_000, help="turns of each format's file; 0 for none")
    parser.add_argument("--sizes", type=float, nargs="*", default=[0.25, 0.5, 1, 2], metavar="GIB")
    parser.add_argument("--encode", type=int, default=2_000, help="turns to bring all the way; 0 for none")
    parser.add_argument("--scratch", type=Path, help="where the files go, and are removed from")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--one", type=Path, nargs=2, metavar=("FILE", "HOME"), help="import one file here, print JSON")
    args = parser.parse_args(given)
    if args.one:
        print(json.dumps(import_one(*args.one)))
        return
    with tempfile.TemporaryDirectory(dir=args.scratch) as scratch:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
        parts = [(args.rows, lambda: speeds(Path(scratch), args.rows, args.seed))]
        parts += [(len(args.sizes), lambda: growth(Path(scratch), args.sizes, args.seed))]
        parts += [(args.encode, lambda: encoded(Path(scratch), args.encode, args.seed))]
        for wanted, part in parts:
            if wanted:
                print(part(), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
