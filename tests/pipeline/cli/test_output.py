"""Human output of every command, at 80 and at 120 columns, compared with transcripts in `expected/`.

To accept changes, run these tests with UPDATE_EXPECTED=1 in the environment and read the difference in Git.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from memstate_core.embed.encoder import PACKAGED_MODEL
from memstate_core.model.text import parse_moment
from memstate_core.run.store import open_store
from memstate_core.storage.purpose import INBOX
from memstate_core.storage.remote_inbox import put_once
from memstate_core.storage.storage import storage
from memstate_pipeline.cli.main import COMMANDS, app
from memstate_pipeline.cli.memory import SUBCOMMANDS
from tests.core.night.older_merges import merge_as_before
from tests.pipeline.cli.small_store import LATER, NEXT, ROWS, dump, field, ids, row
from tests.pipeline.cli.transcript import Terminal

EXPECTED = Path(__file__).parent / "expected"
PUBLISHED = "2026-04-09T02:00:00Z"
AGES_LATER = "2028-04-08T02:00:00Z"
WIDTHS = pytest.mark.parametrize("columns", [80, 120])

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]


@pytest.fixture
def terminal(
    columns: int, small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    """A user on a copy of the prepared store."""
    home = Path(shutil.copytree(small_home, tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Terminal(home, columns, monkeypatch, capsys)


@pytest.fixture
def topics(small_home: Path) -> dict[str, str]:
    return ids(open_store(small_home))


MARKED = {
    "marked.jsonl": '{"q": "Is the gate of the yard open?", "observations": ["yard/2026-04-05", "nothing"]}\n',
    "least.toml": "recall_at_1 = 0.5\nirrelevant_injection_rate = 0.1\n",
}


def compare(name: str, columns: int, text: str) -> None:
    path = EXPECTED / f"{name}.{columns}.txt"
    if os.environ.get("UPDATE_EXPECTED"):
        path.write_text(text)
    assert text == path.read_text()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@WIDTHS
def test_reading(columns: int, terminal: Terminal, topics: dict[str, str]) -> None:
    yard = topics["Old"]
    terminal.run("status")
    terminal.run("query", "Is the gate of the yard open?", "--stages", "structural", "--top-k", "3")
    terminal.run("query", "the gate", "--stages", "temporal", "--top-k", "1", "--evidence-k", "1", "--explain")
    terminal.run("query", "the gate", "--stages", "structural", "--scope", "user:nobody")
    terminal.run("topic", yard, "--history")
    terminal.run("topic", topics["Red"])
    terminal.run("topic", "nobody")
    terminal.run("topic", "serviceberry")
    terminal.run("topic", "yard")
    terminal.run("topic", "ferry")
    terminal.run("facts", "--limit", "3")
    terminal.run("facts", "--subject", yard, "--history")
    terminal.run("facts", "--subject", "nobody")
    terminal.run("context", "the gate of the yard", "--budget", "80", "--stages", "structural")
    terminal.run("memory", "context-pack", "the gate of the yard", "--budget", "40", "--policy", "task")
    terminal.run("memory", "browse-resources")
    terminal.run("conformance", "--adapter", "append-only", "--turns", "10")
    for name, content in MARKED.items():
        Path(name).write_text(content)
    terminal.run("eval", "marked.jsonl", "--k", "1", "--budget", "80", "--thresholds", "least.toml")
    terminal.run("eval", "least.toml")
    terminal.run("eval", "marked.jsonl", "--thresholds", "marked.jsonl")
    terminal.run("export", "--output", "topics.jsonl")
    terminal.run("merges")
    terminal.run("review")
    terminal.run("confirm")
    terminal.run("verify")
    terminal.run("report")
    terminal.run("doctor")
    terminal.run("doctor", "--topic", yard, "--now", NEXT)
    compare("reading", columns, terminal.text)


@WIDTHS
def test_memory(columns: int, terminal: Terminal) -> None:
    """What is written, and how it reads after a night; the figures of meaning differ between processors."""

    def memory(*arguments: str, written: bool = False) -> None:
        terminal.run("memory", *arguments, *(("--scope", "user:ines", "--at", LATER) if written else ()))

    memory("remember", "The lock of the gate was oiled by Ines.", written=True)
    memory("remember", "The lock of the gate was oiled by Ines.", written=True)
    memory(
        "remember", "Answer in short sentences.", "--label", "style", "--authority", "5", "--read-only", written=True
    )
    memory("remember", "Answer in rhymes.", "--authority", "5")
    memory("upsert-session-state", "repair", "--goal", "Repair the gate", "--working-set", "gate.md", written=True)
    memory("upsert-session-state", "repair", "--status", "asleep", written=True)
    memory(
        "upsert-resource",
        "gate.md",
        "--title",
        "The gate",
        "--content",
        "Opens at eight.\nShuts at dusk.",
        written=True,
    )
    memory("upsert-resource", "lock.md", "--title", "The lock", "--parent", "gate.md", written=True)
    memory("upsert-resource", "key.md", "--title", "The key", "--content-file", "nothing.md")
    memory("add-relation", "key:yard", "extends", "key:budget", "--because-of", "yard/2026-04-05", written=True)
    memory("add-relation", "key:yard", "admires", "key:budget", written=True)
    terminal.run("maintain", "--now", PUBLISHED)
    memory("search", "Who oiled the lock?", "--limit", "1")
    memory("context-pack", "Who oiled the lock?", "--budget", "100", "--as-of", PUBLISHED)
    for which in ((), ("--all",), ("--uri", "gate.md"), ("--parent", "gate.md"), ("--uri", "nothing.md")):
        memory("browse-resources", *which)
    memory("probe-relations", "key:yard", "--scope", "user:ines")
    memory("probe-relations", "key:nobody", "--scope", "user:ines")
    memory("probe-relations", "yard")
    memory("verify", "--dry-run")
    memory("verify")
    compare("memory", columns, re.sub(r"\b\d+\.\d{2,3}\b", "N.NNN", terminal.text))


@WIDTHS
def test_explained_scores(columns: int, terminal: Terminal) -> None:
    limits = ("--stages", "structural,temporal", "--top-k", "2", "--evidence-k", "2")
    printed = terminal.run("query", "Is the gate of the yard open?", "--explain", *limits)
    assert [line for line in printed.splitlines() if len(line) > columns] == []
    compare("explained", columns, terminal.text)


@WIDTHS
def test_corrections(columns: int, terminal: Terminal, topics: dict[str, str]) -> None:
    yard, budget, tree, wall = (topics[name] for name in ("Old", "Budget", "Serviceberry", "Dry"))
    terminal.run("feedback", yard, "--used", "--field", "gate", "--now", NEXT)
    terminal.run("topic", tree, "--record", "--failed", "--now", NEXT)
    terminal.run("confirm", budget, "--now", LATER)
    terminal.run("review", "--decide", f"{budget}:{tree}=same", "--now", LATER)
    terminal.run("merges")
    terminal.run("undo", tree, "--now", LATER)
    terminal.run("merges", "--all")
    terminal.run("restore", wall, "--now", LATER)
    terminal.run("pin", yard, "--now", LATER)
    terminal.run("pin", yard, "--off", "--now", LATER)
    terminal.run("undo", "nobody")
    terminal.run("undo", "--run", "nobody")
    terminal.run("rollback", "3", "--now", LATER)
    terminal.run("rollback", "3", "--now", LATER)
    terminal.run("rollback", "77")
    compare("corrections", columns, terminal.text)


@WIDTHS
def test_merges_of_an_older_version(columns: int, terminal: Terminal, topics: dict[str, str], tmp_path: Path) -> None:
    budget, tree, hostile = (topics[name] for name in ("Budget", "Serviceberry", "Red"))
    terminal.run("review", "--merged")
    merge_as_before(open_store(tmp_path / "home"), [(tree, budget), (hostile, budget)], parse_moment(LATER))
    terminal.run("review", "--merged")
    terminal.run("review", "--merged", "--limit", "1")
    (tmp_path / "merges.txt").write_text(f"{tree}\n{hostile}\n")
    (tmp_path / "unknown.txt").write_text(f"{tree}\nnobody\n")
    terminal.run("undo", "--file", "unknown.txt", "--now", LATER)
    terminal.run("undo", "--file", "merges.txt", "--now", LATER)
    terminal.run("undo", "--file", "merges.txt", "--now", LATER)
    terminal.run("undo")
    compare("older_merges", columns, terminal.text)


@WIDTHS
def test_backups(columns: int, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.run("backup", str(tmp_path / "backups"))
    terminal.run("backup", str(tmp_path / "backups"), "--keep", "1")
    terminal.run("backup", str(tmp_path / "backups"), "--list")
    terminal.run("verify", "--backup", str(tmp_path / "backups"))
    terminal.run("verify", "--deep")
    terminal.run("restore-backup", str(tmp_path / "backups"))
    terminal.run("restore-backup", str(tmp_path / "nothing"))
    terminal.run("publish")
    terminal.run("publish", str(tmp_path / "published"))
    terminal.run("publish")
    put_once(storage(tmp_path / "published", INBOX), "inbox", b'{"text": "The pond is deep."}\n')
    terminal.run("fetch-inbox")
    terminal.run("fetch-inbox", str(tmp_path / "nothing"), "--json")
    terminal.run("pull")
    monkeypatch.setenv("MEMSTATE_STORE_URL", f"file://{tmp_path}/nothing")
    terminal.run("pull")
    compare("backups", columns, terminal.text)


def refused(home: Path) -> str:
    """The id of the only row in quarantine."""
    return str(open_store(home).ledger.scan("quarantine").collect()["quarantine_id"].item())


@WIDTHS
def test_running(columns: int, terminal: Terminal, tmp_path: Path) -> None:
    tree = row("tree", "Serviceberry", "2026-04-06", summary=ROWS[4]["summary"], fields=[field("row", "3")])
    again = {name: value for name, value in tree.items() if name != "topic_key"} | {"placement": "new_topic"}
    pond = [row("pond", "Lily pond", "2026-04-07"), row("pond", "Lily pond", "never")]
    dump(tmp_path / "new.jsonl", [ROWS[0], *pond, again])
    (tmp_path / "cut.jsonl.gz").write_bytes(b"\x1f\x8bnot really")
    (tmp_path / "keen.toml").write_text("[policy]\ntopic_count_soft_limit = 0\nsalience_half_life_days = 1.0\n")
    terminal.run("import", "new.jsonl", "cut.jsonl.gz", "--now", LATER)
    terminal.run("quarantine")
    terminal.run("quarantine", "show", refused(tmp_path / "home"))
    terminal.run("quarantine", "replay", "--all", "--now", LATER)
    terminal.run("status")
    terminal.run("quarantine", "dismiss", "--all", "--why", "a slip of the pen", "--now", LATER)
    terminal.run("quarantine", "list", "--all")
    terminal.run("quarantine", "replay")
    terminal.run("plan", "--now", LATER, "--output", "plan.json")
    terminal.run("apply", "plan.json")
    terminal.run("apply", "plan.json")
    terminal.run("merges")
    terminal.run("maintain", "--now", LATER)
    terminal.run("rebuild")
    terminal.run("simulate", "--policies", "keen.toml", "--days", "3", "--now", LATER)
    terminal.run("demo")
    compare("running", columns, terminal.text)


@WIDTHS
def test_care(columns: int, terminal: Terminal, topics: dict[str, str]) -> None:
    Path("marked.jsonl").write_text(MARKED["marked.jsonl"])
    terminal.run("init")
    terminal.run("init")
    terminal.run("notify")
    terminal.run("notify", "--test")
    terminal.run("retention", "--dry-run", "--now", AGES_LATER)
    terminal.run("retention", "--now", AGES_LATER)
    terminal.run("compact", "--now", AGES_LATER)
    terminal.run("reembed", "--model", PACKAGED_MODEL, "--passage-prefix", "passage: ", "--dry-run")
    terminal.run("reembed", "--model", PACKAGED_MODEL, "--passage-prefix", "passage: ", "--questions", "marked.jsonl")
    terminal.run("reembed", "--back")
    terminal.run("erase", "--topic", topics["Dry"], "--dry-run")
    terminal.run("erase", "--topic", topics["Dry"], "--why", "a wish", "--now", AGES_LATER)
    terminal.run("erase", "--scope", "user:nobody", "--dry-run")
    terminal.run("erase")
    terminal.run("reshard", "2", "--dry-run")
    terminal.run("reshard", "2")
    terminal.run("reshard", "2")
    compare("care", columns, terminal.text)


@WIDTHS
def test_serving(columns: int, terminal: Terminal) -> None:
    terminal.run("keys", "add", "bot", "--scope", "user:ines", "--expires", "2100-01-01")
    terminal.run("keys", "list")
    terminal.run("keys", "revoke", "bot")
    terminal.run("keys", "list")
    terminal.run("ui", "--dry-run")
    terminal.run("serve", "--host", "0.0.0.0", "--port", "8420")
    terminal.run("mcp", "--scope", "nobody")
    compare("serving", columns, terminal.text)


@WIDTHS
def test_help(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(tmp_path / "home", columns, monkeypatch, capsys)
    terminal.run("--help")
    for command in COMMANDS:
        terminal.run(command, "--help")
    for command in ("add", "list", "revoke"):
        terminal.run("keys", command, "--help")
    for command in ("list", "show", "replay", "dismiss"):
        terminal.run("quarantine", command, "--help")
    for command in SUBCOMMANDS:
        terminal.run("memory", command, "--help")
    terminal.run("query")
    terminal.run("keys")
    listed = [line for line in terminal.text.splitlines() if line.startswith("  ")]
    assert [line for line in listed if line.endswith("...")] == [], "a first sentence that does not fit"
    compare("help", columns, terminal.text)


def test_every_command_has_a_transcript() -> None:
    """Its help is not enough."""
    texts = [path.read_text() for path in EXPECTED.glob("*.txt") if not path.name.startswith("help.")]
    run = [line.split()[2:4] for text in texts for line in text.splitlines() if line.startswith("$")]
    assert {command.name for command in app.registered_commands} <= {words[0] for words in run}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        own = {command.name for command in group.typer_instance.registered_commands if command.name}
        assert own <= {words[1] for words in run if words[0] == group.name and len(words) > 1}, group.name
