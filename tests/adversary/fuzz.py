"""Fuzzing guided by coverage (atheris): any bytes as a file are read to the end, and every row is valid or refused.

libFuzzer ends its process, so the attack runs in one of its own: `python -m tests.adversary.fuzz LIMIT SEED FOLDER`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

LIMIT = "-max_total_time=20"
"""The flag of libFuzzer that ends the attack: after so many seconds, or `-runs=N`."""
NAMES = ("a.jsonl", "a.json", "a.txt", "a.zip", "a.jsonl.gz", "a.parquet")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
SEEDS = (
    b'{"text": "Hi", "actor": "Ines", "scope": {"type": "user", "id": "a"}, "fields": [{"name": "a", "value": 1}]}\n',
    b'[{"uuid": "c", "name": "n", "chat_messages": [{"uuid": "m", "text": "Hi", "sender": "human"}]}]',
    b'[{"title": "t", "mapping": {"a": {"id": "a", "message": {"id": "m", "author": {"role": "user"}}}}}]',
    b'{"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "Hi"}}\n',
    b"[01.02.24, 10:11:12] Ines: Hi\n[01.02.24, 10:11:13] Ben: Yes\n",
    b'{"messages": [{"role": "user", "content": "Hi"}]}\n',
)


def attack(random: Random, folder: Path, limit: str = LIMIT) -> int:
    """Fuzzes the readers; the case that broke one is in the message."""
    seed = str(random.randrange(1, 1 << 30))
    command = [sys.executable, "-m", "tests.adversary.fuzz", limit, seed, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    crashes = {path.name: path.read_bytes() for path in folder.glob("crash-*")}
    assert done.returncode == 0, f"{crashes}\n{done.stderr[-3000:]}"
    runs = re.search(r"Done (\d+) runs", done.stderr)
    assert runs, done.stderr[-3000:]
    return int(runs.group(1))


def main(limit: str, seed: str, folder: str) -> None:
    """Fuzzes up to the limit; the process ends here."""
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["memstate_core.ingest"]):
        from memstate_core.ingest.dumps import open_dump
        from memstate_core.ingest.evidence_frame import evidence_frame
        from memstate_core.ingest.validation.batch import validate_batch
        from memstate_core.ingest.validation.quarantine import quarantine_frame
        from memstate_core.ingest.validation.timestamps import Clock
        from memstate_core.ingest.validation.validate import Rules
    from memstate_core.model.errors import UnreadableDump
    from memstate_core.model.scope import GLOBAL_SCOPE

    corpus, rules, longest = Path(folder) / "corpus", Rules(GLOBAL_SCOPE, Clock(NOW, "later")), 1 << 20
    corpus.mkdir(exist_ok=True)
    for number, sample in enumerate(SEEDS):
        (corpus / str(number)).write_bytes(bytes([number % 3]) + sample)

    def one(data: bytes) -> None:
        path = Path(folder) / NAMES[data[0] % len(NAMES) if data else 0]
        path.write_bytes(data[1:])
        try:
            with open_dump(path, longest) as dump:
                for rows in dump.batches(1000, 1 << 20):
                    found = validate_batch(rows, rules, longest)
                    assert len(found.records) + len(found.refusals) == len(rows)
                    assert evidence_frame(found.records, NOW, "r").height == len(found.records)
                    assert quarantine_frame(found.refusals, path.name, NOW, "r").height == len(found.refusals)
        except UnreadableDump:
            pass  # it names the file

    # The highest memory of a process counts that of the process it was started from, so libFuzzer's limit says nothing.
    flags = [limit, "-rss_limit_mb=0", f"-seed={seed}", "-max_len=4096", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
