"""Law L8: after an erasure no byte of the home holds the subject, and the rest is as if it had never been there."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memstate_core.ingest.importer import import_paths
from memstate_core.model.errors import EraseRefused
from memstate_core.model.text import parse_moment
from memstate_core.night.erasure import erase as erasure
from memstate_core.night.erasure.files import ended_runs
from memstate_core.night.erasure.subject import Subject
from memstate_core.run.store import Store, open_store
from memstate_core.state.files import make_folder
from memstate_pipeline.run import maintain
from memstate_pipeline.writers import complete_erasure
from tests.pipeline.conftest import fork_memstate
from tests.pipeline.erased_homes import AT, dump, erase, holding, state

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_settings")]

MARK = "zq7marker"
SCOPE = f"user:{MARK}-user"
NIGHTS = ("2026-04-06T02:00:00Z", "2026-04-07T02:00:00Z")


def marked() -> list[dict[str, Any]]:
    scope = {"type": "user", "id": f"{MARK}-user"}
    base = {"scope": scope, "observed_at": "2026-04-05T00:00:00Z", "actor": f"{MARK}-actor"}
    same = {"title": f"Quartz {MARK} harvest", "summary": f"Signing with {MARK} partners at the harbour office"}
    fields = [{"name": f"{MARK}_name", "value": f"value {MARK}", "why_changed": f"since {MARK}"}]
    named = [
        base
        | same
        | {"observation_id": f"{MARK}/{n}", "placement": "new_topic", "fields": fields, "colour": f"x{MARK}"}
        for n in range(3)
    ]
    turns = [
        base | {"observation_id": f"{MARK}/t{n}", "session_id": f"{MARK}-s", "turn": n, "text": f"The {MARK} boat {n}."}
        for n in range(4)
    ]
    return [*named, *turns, base | {"observation_id": f"{MARK}/bad", "title": 5}]


def rest() -> list[dict[str, Any]]:
    base = {"scope": {"type": "user", "id": "ines"}, "observed_at": "2026-04-05T00:00:00Z"}
    yards = [base | {"observation_id": f"y{n}", "topic_key": "yard", "title": "Old Ferry Yard"} for n in range(3)]
    turns = [
        base | {"observation_id": f"c{n}", "session_id": "c", "turn": n, "actor": "Ines" if n % 2 else "Bo"}
        | {"text": f"Serviceberry number {n} for the courtyard of the school."}
        for n in range(4)
    ]  # fmt: skip
    return [*yards, *turns]


def lived(home: Path, rows: list[dict[str, Any]]) -> Store:
    """Two nights, the second with the same dump in its inbox."""
    home.mkdir(parents=True)
    store = open_store(home)
    import_paths(store.ledger, store.settings, [dump(home.parent / "d.jsonl", rows)], now=parse_moment(NIGHTS[0]),
                 run_id="import")  # fmt: skip
    maintain(store, parse_moment(NIGHTS[0]))
    dump(home / "inbox" / "processed" / "again.jsonl", rows)
    (home / "inbox" / "processed" / "packed.jsonl.gz").write_bytes(
        gzip.compress((home.parent / "d.jsonl").read_bytes())
    )
    maintain(store, parse_moment(NIGHTS[1]))
    return open_store(home)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, no_settings: None) -> Path:
    """A home with the marked scope, and one that never had it."""
    del no_settings
    folder = tmp_path_factory.mktemp("erasure")
    lived(folder / "a" / "home", [*marked(), *rest()])
    lived(folder / "b" / "home", rest())
    return folder


@pytest.fixture
def store(homes: Path, tmp_path: Path) -> Store:
    return open_store(Path(shutil.copytree(homes / "a" / "home", tmp_path / "home")))


def test_a_scope_is_erased_from_every_byte(store: Store, homes: Path, tmp_path: Path) -> None:
    home = store.home.root
    assert fork_memstate(home, "backup", str(tmp_path / "backups")).code == 0
    (home / "notifications.json").write_text(json.dumps({"message": f"the night failed at {MARK}"}))
    assert len(holding(home, MARK)) > 10
    before = state(store)
    dry = fork_memstate(home, "erase", "--scope", SCOPE, "--dry-run", "--json")
    assert dry.code == 0, dry.stderr
    assert state(store) == before
    answer = fork_memstate(home, "erase", "--scope", SCOPE, "--now", "2026-04-09T00:00:00Z", "--json")
    assert answer.code == 0, answer.stderr
    assert "has no chain" not in answer.stderr, "an erasure replaces the chain on purpose"
    assert answer.document["removed"]["evidence"] == dry.document["removed"]["evidence"] == 7
    assert holding(home, MARK) == []
    assert holding(tmp_path / "backups", MARK) == []
    assert state(open_store(home)) == state(open_store(homes / "b" / "home"))
    verified = fork_memstate(home, "verify", "--deep", "--json")
    assert verified.code == 0, verified.stdout
    again = fork_memstate(home, "import", str(dump(tmp_path / "again.jsonl", marked()[:7])), "--json")
    assert (again.document["accepted"], again.document["reasons"]) == (0, {"erased": 7})
    night = fork_memstate(home, "maintain", "--now", "2026-04-10T02:00:00Z", "--json")
    assert night.code == 0, night.stderr
    assert fork_memstate(home, "query", "yard", "--json").document["candidates"]


def with_later_decisions(store: Store, folder: Path) -> None:
    """Another night that decides something: the ledger lists the files of later nights first."""
    row = {"scope": {"type": "user", "id": "ines"}, "observed_at": "2026-04-07T00:00:00Z", "observation_id": "late"}
    late = dump(folder / "late.jsonl", [row | {"topic_key": "boat", "title": "A boat for the lagoon"}])
    for command in (("import", str(late)), ("maintain", "--now", "2026-04-08T02:00:00Z")):
        assert fork_memstate(store.home.root, *command).code == 0
    numbers = store.ledger.scan("transitions").filter(pl.col("kind") != "published").collect()["seq"]
    assert not numbers.is_sorted()


def test_nothing_is_erased_of_someone_whom_no_night_has_seen(store: Store, tmp_path: Path) -> None:
    with_later_decisions(store, tmp_path)
    before, files = state(store), sorted(store.home.root.rglob("*"))
    for options in (("--dry-run",), ()):
        answer = fork_memstate(store.home.root, "erase", "--actor", "Nobody", *options, "--json")
        assert (answer.code, answer.document["error"]["type"]) == (1, "SubjectNotFound")
        assert "nothing was erased: the store holds nothing of actor 'Nobody'" in answer.document["error"]["message"]
    assert (state(store), sorted(store.home.root.rglob("*"))) == (before, files)


def test_the_transitions_that_lose_something_are_counted_in_any_order_of_files(store: Store, tmp_path: Path) -> None:
    with_later_decisions(store, tmp_path)
    before = store.ledger.scan("transitions").collect()
    certificate = erase(store, "actor", "Bo")
    after = open_store(store.home.root).ledger.scan("transitions").collect()
    pairs = before.filter(pl.col("kind") != "published").join(after, on="seq", suffix="_after")
    others = (name for name in before.columns if name != "seq")
    same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_after")) for name in others)
    assert certificate.removed["transitions"] == pairs.filter(~same).height > 0


def test_the_rest_of_a_segment_is_placed_again(store: Store) -> None:
    for kind, value in (("actor", "Bo"), ("observation", "y0")):
        certificate = erase(store, kind, value)
        assert certificate.removed["evidence"]
        assert certificate.subject_hash != value
    (topic,) = {row["topic_id"] for row in served_topics(store) if row["title"] == "Old Ferry Yard"}
    assert erase(store, "topic", topic).removed["evidence"] == 2
    assert erase(store, "session", "c").removed["evidence"] == 2
    assert fork_memstate(store.home.root, "verify", "--deep").code == 0


def test_an_id_that_several_scopes_have_is_erased_in_the_named_one(store: Store, tmp_path: Path) -> None:
    home, other = store.home.root, {"type": "user", "id": "bo"}
    row = {"scope": other, "observed_at": "2026-04-06T00:00:00Z", "text": "Chestnuts for the avenue"}
    rows = [row | {"observation_id": "c0", "session_id": "c", "turn": 0}]
    assert fork_memstate(home, "import", str(dump(tmp_path / "more.jsonl", rows))).code == 0
    for option, value in (("--session", "c"), ("--observation", "c0")):
        refused = fork_memstate(home, "erase", option, value, "--json")
        assert (refused.code, "user:bo, user:ines" in refused.stderr) == (1, True)
    erased = fork_memstate(home, "erase", "--session", "c", "--scope", "user:bo", "--json")
    assert erased.document["removed"]["evidence"] == 1
    assert store.ledger.scan("evidence").filter(pl.col("session_id") == "c").collect().height == 4


def test_dumps_that_no_run_has_read_are_kept(store: Store) -> None:
    """Their rows may be nowhere else, also those of others."""
    waiting = dump(store.home.inbox / "new.jsonl", [rest()[0] | {"observation_id": "new"}, marked()[0]])
    with pytest.raises(EraseRefused, match=r"new\.jsonl"):
        erase(store, "scope", SCOPE)
    waiting.unlink()
    failed = store.home.failed / "broken.parquet"
    make_folder(failed.parent)
    failed.write_bytes(b"PAR1 but cut off")
    certificate = erase(store, "scope", SCOPE)
    assert failed.exists()
    assert any("broken.parquet cannot be read" in place for place in certificate.out_of_reach)


def test_a_record_of_runs_that_may_be_of_others_goes_or_stays_as_a_person_says(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = Path(shutil.copytree(store.home.dagster, tmp_path / "shared"))
    runs, command = ended_runs(shared), ("erase", "--scope", SCOPE, "--json")
    assert runs > 0
    before, outside = state(store), {"DAGSTER_HOME": str(shared)}
    refused = fork_memstate(store.home.root, *command, **outside)
    assert (refused.code, refused.document["error"]["type"]) == (2, "RunHistoryShared")
    assert (state(store), ended_runs(shared)) == (before, runs)
    assert not store.home.erasures.exists()

    monkeypatch.setattr(erasure, "republish", interrupted)
    history = erasure.RunHistory(shared, clears=False)
    with pytest.raises(KeyboardInterrupt):
        erasure.erase(store, history, Subject("actor", f"{MARK}-actor"), AT, "tester", "asked for")
    monkeypatch.undo()
    certificate = complete_erasure(open_store(store.home.root))
    assert certificate is not None
    assert any(f"record of runs in {shared}" in place for place in certificate.out_of_reach)
    assert (ended_runs(shared), ended_runs(store.home.dagster)) == (runs, 0)

    done = fork_memstate(
        store.home.root, "erase", "--scope", "user:ines", "--run-history", "clear", "--json", **outside
    )
    assert (done.code, done.document["removed"]["runs"]) == (0, runs), done.stderr
    assert ended_runs(shared) == 0


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def served_topics(store: Store) -> list[dict[str, Any]]:
    found = fork_memstate(store.home.root, "export", "--json").document["topics"]
    return [{"topic_id": topic["id"], "title": topic["title"]} for topic in found]


@pytest.mark.parametrize("step", ["cut", "_rewrite", "remove_derived", "clear_runs", "republish", "certify"])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_erasure_is_completed(store: Store, homes: Path, step: str, after: bool) -> None:
    interrupt(store, step, after=after)
    store = open_store(store.home.root)
    complete_erasure(store)
    assert holding(store.home.root, MARK) == []
    assert state(store) == state(open_store(homes / "b" / "home"))


def interrupt(store: Store, step: str, *, after: bool) -> None:
    """Begins to erase the marked scope, and ends before or after a step."""
    done = getattr(erasure, step)

    def killed(*arguments: Any) -> None:
        if after:
            done(*arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasure, step, killed)
        with pytest.raises(KeyboardInterrupt):
            erase(store, "scope", SCOPE)


COMPLETING = {
    "replay": ("quarantine", "replay", "--all"),
    "dismiss": ("quarantine", "dismiss", "--all", "--why", "of no use"),
    "backup": ("backup", "../backups"),
    "plan": ("plan", "-o", "../plan.json"),
    "feedback": ("feedback", "yard", "--used"),
    "query": ("query", f"boat {MARK}", "--record"),
    "retention": ("retention",),
    "undo": ("undo", "nothing"),
    "erase": ("erase", "--scope", SCOPE),
}
"""Commands that write, none of which may find or leave anything of an erasure that was interrupted."""


@pytest.mark.parametrize("command", COMPLETING)
def test_every_command_that_writes_completes_it_first(store: Store, homes: Path, tmp_path: Path, command: str) -> None:
    home = store.home.root
    interrupt(store, "republish", after=False)
    assert holding(home, MARK)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        answer = fork_memstate(home, *COMPLETING[command])
    assert answer.code == (1 if command == "undo" else 0), answer.stderr
    assert not store.home.begun_erasure.exists()
    assert MARK not in answer.stdout
    assert holding(tmp_path, MARK) == []
    assert state(open_store(home)) == state(open_store(homes / "b" / "home"))
