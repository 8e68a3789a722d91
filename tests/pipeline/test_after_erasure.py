"""After an erasure, no other command brings the subject back, and the store stays sound."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memstate_core.run.store import open_store
from tests.pipeline.conftest import Answer, fork_memstate
from tests.pipeline.erased_homes import dump, holding, state

pytestmark = pytest.mark.slow

MARK = "zq7marker"
BO = f"{MARK}-bo"
SETTINGS = """[store]
niceness = 0
[policy]
topic_count_soft_limit = 0
salience_half_life_days = 2.0
half_life_growth_max = 1.0
"""
NIGHTS = [f"2026-04-{day:02}T02:00:00Z" for day in range(6, 16)]
NAMED = {"Quartz harvest festival": "Ines", "Copper bridge repairs": "Ada", "Granite steps estimate": "Ines"}


def row(name: str, actor: str, **more: Any) -> dict[str, Any]:
    base = {"observation_id": name, "scope": {"type": "user", "id": "ines"}, "actor": actor}
    return base | {"observed_at": "2026-04-05T00:00:00Z"} | more


def rows() -> list[dict[str, Any]]:
    """Duplicates of two people, some old topics, an extension of two of them, and a conversation."""
    twins = [
        row(f"{actor}/{title}", actor, placement="new_topic", title=title, summary=f"About the {title} at the harbour")
        for title, other in NAMED.items()
        for actor in (BO, other)
    ]
    since = {"observed_at": "2026-02-01T00:00:00Z"}
    edges = [{"to_topic_key": key, "kind": "part_of"} for key in ("wall", "gate")]
    width = [{"name": "width", "value": f"30 cm, {MARK}"}]
    return [
        *twins,
        row("old", "Ines", topic_key="wall", title="Dry stone wall", **since),
        row("wide", BO, topic_key="wall", title="Dry stone wall", fields=width, **since),
        row("gate", BO, topic_key="gate", title=f"Gate {MARK}", **since),
        row("budget", "Ines", topic_key="budget", title="Budget of the spring", edges=edges),
        *(row(f"c{n}", BO if n % 3 else "Ines", session_id="c", turn=n, text=_turn(n)) for n in range(6)),
    ]


def _turn(number: int) -> str:
    return f"Serviceberry {number} for the courtyard of the school" + (f", says {MARK}." if number % 3 else ".")


class Life:
    """A store of its own, and the commands on it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *arguments: str, code: int = 0) -> Answer:
        answer = fork_memstate(self.home, *arguments)
        assert answer.code == code, (arguments, answer.stderr)
        assert "Traceback" not in answer.stderr
        return answer

    def document(self, *arguments: str) -> Any:
        return self.run(*arguments, "--json").document

    def sound(self) -> None:
        """Nothing of the subject is anywhere, and the store verifies."""
        assert holding(self.home, MARK) == []
        verified = fork_memstate(self.home, "verify", "--deep")
        assert verified.code == 0, verified.stdout


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home after nights, an undone merge, pins, verdicts and rollbacks."""
    folder = tmp_path_factory.mktemp("lived")
    life = Life(folder / "home")
    life.home.mkdir()
    (life.home / "memstate.toml").write_text(SETTINGS)
    life.run("import", str(dump(folder / "d.jsonl", rows())), "--now", NIGHTS[0])
    life.run("maintain", "--now", NIGHTS[0])
    merges = life.document("merges")["merges"]
    assert len(merges) == len(NAMED)
    topics = {topic["title"]: topic["id"] for topic in life.document("export")["topics"]}
    (folder / "before.json").write_text(json.dumps({"merges": merges, "topics": topics}))
    life.run("undo", merges[0]["id"], "--now", NIGHTS[1])
    life.run("pin", topics[f"Gate {MARK}"], "--now", NIGHTS[1])
    verdict = f"{topics[f'Gate {MARK}']}:{topics['Budget of the spring']}=different"
    life.run("review", "--decide", verdict, "--now", NIGHTS[1])
    life.run("rollback", "--now", NIGHTS[1])
    life.run("undo", "--run", merges[0]["run_id"], "--now", NIGHTS[1])
    life.run("rollback", "--now", NIGHTS[1])
    life.run("maintain", "--now", NIGHTS[2])
    return folder


@pytest.fixture
def life(lived: Path, tmp_path: Path) -> Life:
    return Life(Path(shutil.copytree(lived / "home", tmp_path / "home")))


def test_corrections_and_nights_bring_nothing_back(life: Life, lived: Path) -> None:
    before = json.loads((lived / "before.json").read_text())
    erased = life.document("erase", "--actor", BO)
    life.sound()
    served = life.document("status")["snapshot"]
    for merge in before["merges"]:
        life.run("undo", merge["id"], code=1)
        fork_memstate(life.home, "restore", merge["dropped"]["id"], merge["survivor"]["id"])
    for command in (["undo", "--run", before["merges"][0]["run_id"]], ["rebuild"], ["quarantine", "list"]):
        life.run(*command)
    gate, budget = before["topics"][f"Gate {MARK}"], before["topics"]["Budget of the spring"]
    for refused in (
        ["pin", gate],
        ["restore", gate],
        ["confirm", gate],
        ["review", "--decide", f"{gate}:{budget}=same"],
    ):
        life.run(*refused, code=1)
    life.run("rollback", "1", code=1)
    life.sound()
    life.run("rollback", served.partition("/")[2])
    assert life.document("status")["state_hash"] == erased["state_hash_after"]
    life.run("maintain", "--now", NIGHTS[4])
    life.run("import", str(lived / "d.jsonl"), "--now", NIGHTS[5])
    life.run("maintain", "--now", NIGHTS[5])
    life.run("rollback")
    life.run("maintain", "--now", NIGHTS[6])
    life.sound()


@pytest.fixture
def backups(life: Life, tmp_path: Path) -> Path:
    """A backup with a dump that waits, which is out of reach of the erasure that follows."""
    waiting = [row("late", BO, topic_key="late", title=f"Late {MARK}"), row("later", "Ines", title="Later")]
    dump(life.home / "inbox" / "waiting.jsonl", waiting)
    life.run("backup", str(tmp_path / "backups"))
    (life.home / "last_backup.json").unlink()
    life.run("maintain", "--now", NIGHTS[3])
    life.run("erase", "--actor", BO)
    assert holding(tmp_path / "backups", MARK)
    return tmp_path / "backups"


def test_a_backup_from_before_is_restored_without_the_erased(life: Life, backups: Path, tmp_path: Path) -> None:
    """Where the home of the backup is there, or is named, or a later backup of the folder knows what was erased."""
    restored = Life(tmp_path / "by_place")
    answer = restored.document("restore-backup", str(backups))
    assert answer["erased_again"] == [1]
    restored.sound()
    again = restored.document("import", str(dump(tmp_path / "d.jsonl", rows())))
    assert again["reasons"] == {"erased": sum(each["actor"] == BO for each in rows())}
    for each in (life, restored):
        each.run("maintain", "--now", NIGHTS[4])
    assert state(open_store(restored.home)) == state(open_store(life.home))
    restored.sound()

    life.home.rename(tmp_path / "moved")
    restored = Life(tmp_path / "named")
    named = restored.document("restore-backup", str(backups), "--erasures", str(tmp_path / "moved"))
    assert named["erased_again"] == [1]
    restored.sound()

    (tmp_path / "moved").rename(life.home)
    life.run("backup", str(backups))
    shutil.rmtree(life.home)
    restored = Life(tmp_path / "by_a_later_backup")
    assert restored.document("restore-backup", str(backups), "--backup", "1")["erased_again"] == [1]
    restored.sound()
    restored = Life(tmp_path / "later")
    assert restored.document("restore-backup", str(backups))["erased_again"] == []
    restored.sound()


def test_a_backup_in_which_an_erasure_cannot_be_repeated_is_refused(life: Life, backups: Path, tmp_path: Path) -> None:
    (life.home / "ledger" / "erased.json").unlink()
    refused = Life(tmp_path / "restored").run("restore-backup", str(backups), code=1)
    assert "which must be made again" in " ".join(refused.stderr.split())
    assert not (tmp_path / "restored").exists()


def test_a_subject_is_erased_before_the_first_night(tmp_path: Path) -> None:
    life = Life(tmp_path / "home")
    dump(tmp_path / "d.jsonl", [*rows(), {"scope": 3, "title": MARK, "actor": BO}])
    life.run("import", str(tmp_path / "d.jsonl"))
    erased = life.document("erase", "--actor", BO)
    assert erased["removed"]["quarantine"] == 1
    assert (erased["state_hash_before"], erased["state_hash_after"]) == (None, None)
    assert holding(life.home, MARK) == []
    life.run("maintain", "--now", NIGHTS[0])
    life.sound()
