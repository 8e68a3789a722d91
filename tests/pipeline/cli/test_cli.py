"""The command line for scripts: one JSON document, exit codes, errors with a remedy."""

import json
import re
from pathlib import Path

import pytest

from memstate_core.model.text import parse_moment
from memstate_core.state.lock import exclusive
from memstate_pipeline.cli.main import COMMANDS
from tests.pipeline.conftest import Memstate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str, memstate: Memstate) -> None:
    answer = memstate(command, "--help")
    assert answer.code == 0
    assert "--json" in answer.stdout


def test_status_of_an_empty_store_is_an_answer(memstate: Memstate, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    answer = memstate("status", "--json")
    assert answer.code == 0
    assert answer.document["snapshot"] is None
    assert answer.document["topics"] == {"active": 0, "detached": 0, "archived": 0, "merged": 0}


@pytest.mark.parametrize("command", [("status",), ("quarantine",), ("quarantine", "list"), ("query", "x"), ("export",)])
def test_a_mistyped_home_is_an_error_of_commands_that_read(
    command: tuple[str, ...], memstate: Memstate, tmp_path: Path
) -> None:
    answer = memstate(*command)
    assert answer.code == 1
    assert "or pass --home" in answer.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("memory", "verify"),
        ("memory", "verify", "--dry-run"),
        ("publish", "published"),
        ("ui", "--dry-run"),
        ("ui",),
        ("rebuild",),
        ("keys", "revoke", "x"),
    ],
)
def test_commands_that_begin_no_store_make_nothing_in_a_mistyped_home(
    command: tuple[str, ...], memstate: Memstate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = memstate(*command, "--json")
    assert (answer.code, answer.document["error"]["type"]) == (1, "StoreNotFound")
    assert f"{tmp_path / 'home'} holds no store. Run `memstate import PATH`" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_status_names_what_is_served(on_demo: Memstate) -> None:
    document = on_demo("status", "--json").document
    assert set(document) >= {"snapshot", "state_hash", "topics", "evidence", "quarantined", "last_run"}
    assert (document["evidence"], document["quarantined"], document["waiting"]) == (195, 3, 0)


@pytest.mark.parametrize("arguments", [("query", "anything"), ("topic", "x"), ("export",), ("verify",), ("report",)])
def test_reading_an_empty_store_says_what_to_do(arguments: tuple[str, ...], memstate: Memstate) -> None:
    answer = memstate(*arguments, "--json")
    assert answer.code == 1
    assert "memstate import PATH" in answer.stderr
    assert answer.document["error"]["type"] == "StoreNotFound"


def test_query_answers_with_topics_and_evidence(on_demo: Memstate) -> None:
    answer = on_demo("query", "Which tree did the children choose?", "--scope", "user:ines", "--json")
    document = answer.document
    assert set(document) >= {"query", "candidates", "evidence", "summary_text", "snapshot"}
    assert "chat/2026-03-20#1" in [found["observation_id"] for found in document["evidence"][:5]]
    human = on_demo("query", "Which tree did the children choose?", "--explain")
    assert human.code == 0
    assert "Serviceberry" in human.stdout


def test_another_scope_sees_nothing(on_demo: Memstate) -> None:
    document = on_demo("query", "Which tree did the children choose?", "--scope", "user:other", "--json").document
    assert document["candidates"] == [] == document["evidence"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("query", "x", "--scope", "nobody"), "expected TYPE:ID"),
        (("query", "x", "--stages", "psychic"), "unknown stage"),
        (("maintain", "--now", "yesterday"), "expected ISO 8601"),
        (("export", "--format", "xml"), "expected jsonl or parquet"),
        (("export", "--format", "parquet"), "needs --output"),
        (("nonsense",), "No such command"),
        (("import", "x", "--scope", "planet:earth"), "expected TYPE:ID"),
    ],
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...], said: str, memstate: Memstate) -> None:
    answer = memstate(*arguments, "--json")
    assert answer.code == 2
    assert said in " ".join(re.sub(r"[│╭╰─╮╯]", " ", answer.stderr).split())
    assert said in answer.document["error"]["message"]
    assert answer.document["error"]["exit_code"] == 2


def test_a_file_that_cannot_be_read_exits_1_and_the_others_are_read(memstate: Memstate, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text('{"text": "The yard is open."}\n')
    answer = memstate("import", str(tmp_path / "missing.jsonl"), str(good), "--json")
    assert answer.code == 1
    assert answer.document["accepted"] == 1
    assert "missing.jsonl" in answer.stderr


def test_a_wrong_setting_exits_2_and_names_it(memstate: Memstate, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memstate.toml").write_text("[policy]\nsalience_half_life_days = -3\n")
    answer = memstate("status")
    assert answer.code == 2
    assert "memstate.toml: line 2, column 27: policy.salience_half_life_days = -3" in answer.stderr
    assert "greater than 0" in answer.stderr
    by_variable = memstate("status", MEMSTATE_STORE_SHARDS="many")
    assert "MEMSTATE_STORE_SHARDS" in by_variable.stderr


@pytest.mark.parametrize("command", [("status",), ("ui", "--dry-run")])
def test_a_schedule_that_is_no_cron_expression_is_refused(
    command: tuple[str, ...], memstate: Memstate, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "memstate.toml").write_text('[schedule]\ncron = "a b c d e"\n')
    refused = memstate(*command, "--json")
    assert (refused.code, refused.document["error"]["key"]) == (2, "schedule.cron")
    (tmp_path / "home" / "memstate.toml").write_text('[schedule]\ncron = "30 1 * * 1-5"\n')
    assert memstate(*command).code == 0


@pytest.mark.parametrize("command", ["maintain", "rebuild"])
def test_a_locked_store_exits_3_and_says_by_whom(command: str, memstate: Memstate, tmp_path: Path) -> None:
    with exclusive(tmp_path / "home" / "run.lock", "the test that holds it"):
        answer = memstate(command, "--json")
    assert answer.code == 3
    assert "the test that holds it" in answer.document["error"]["holder"]
    assert "Wait for it to end" in answer.stderr


def test_a_night_of_a_home_that_does_not_exist_is_refused(memstate: Memstate, tmp_path: Path) -> None:
    refused = memstate("maintain", "--json")
    assert (refused.code, refused.document["error"]["type"]) == (1, "StoreNotFound")
    assert f"{tmp_path / 'home'} holds no store. Run `memstate import PATH`" in refused.stderr
    assert not (tmp_path / "home").exists()


def test_export_parquet_holds_what_export_jsonl_does(on_demo: Memstate, tmp_path: Path) -> None:
    import polars as pl

    answer = on_demo("export", "--format", "parquet", "--output", str(tmp_path / "topics.parquet"), "--json")
    assert answer.code == 0, answer.stderr
    lines = on_demo("export").stdout.splitlines()
    assert pl.read_parquet(tmp_path / "topics.parquet")["id"].to_list() == [json.loads(line)["id"] for line in lines]


def test_as_of_shows_what_was_true_then(on_demo: Memstate) -> None:
    (yard,) = [topic for topic in on_demo("export", "--json").document["topics"] if topic["title"] == "Old Ferry Yard"]
    then = on_demo("topic", yard["id"], "--as-of", "2026-03-20T00:00:00Z", "--json").document
    now = on_demo("topic", yard["id"], "--json").document
    assert then["fields"]["budget_eur"]["history"][0]["value"] == 168_500
    assert [revision["value"] for revision in now["fields"]["budget_eur"]["history"]] == [176_000]


def test_ui_dry_run_says_what_it_would_start(memstate: Memstate, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    document = memstate("ui", "--dry-run", "--json").document
    assert document["environment"]["MEMSTATE_HOME"] == str(tmp_path / "home")
    assert "enabled: false" in (Path(document["environment"]["DAGSTER_HOME"]) / "dagster.yaml").read_text()


def test_doctor_finds_this_installation_sound(memstate: Memstate) -> None:
    answer = memstate("doctor", "--json")
    assert answer.code == 0, answer.stdout
    details = {row["name"]: row["detail"] for row in answer.document}
    assert details.keys() >= {"packages", "settings", "model", "lock", "snapshot"}
    assert "packaged; run by " in details["model"]
    chosen = memstate("doctor", "--json", MEMSTATE_EMBEDDING_RUNTIME="sentence-transformers").document
    assert [row["detail"] for row in chosen if row["name"] == "model"] == [
        "all-MiniLM-L6-v2, packaged; run by sentence-transformers"
    ]


def test_doctor_explains_a_topic(on_demo: Memstate) -> None:
    (yard,) = [topic for topic in on_demo("export", "--json").document["topics"] if topic["title"] == "Old Ferry Yard"]
    answer = on_demo("doctor", "--topic", yard["id"], "--now", "2026-07-01T00:00:00Z").stdout.splitlines()
    facts = on_demo("doctor", "--topic", yard["id"], "--now", "2026-07-01T00:00:00Z", "--json").document
    assert (facts["id"], facts["now"], facts["rule"]) == (yard["id"], "2026-07-01T00:00:00Z", None)
    assert facts["values"]["half_life"] == {"key": "salience_half_life_days", "value": 90.0, "source": "default"}
    assert answer[0].startswith(f"Old Ferry Yard  [{yard['id']}]")
    assert answer[1:] == facts["lines"]
    early = on_demo("doctor", "--topic", yard["id"], "--now", "2020-01-01", "--json").document
    assert early["now"] == on_demo("status", "--json").document["last_run"]["now"]
    assert early["salience"] == pytest.approx(yard["salience"])
    assert early["salience"] > facts["salience"]
    assert on_demo("doctor", "--topic", "nothing").code == 1


def test_doctor_names_the_rule_that_governs_a_topic(on_demo: Memstate) -> None:
    (yard,) = [topic for topic in on_demo("export", "--json").document["topics"] if topic["title"] == "Old Ferry Yard"]
    rules = '[{name = "old", on = "nightly", when = "age_days > 20", do = "archive"}]'
    facts = on_demo("doctor", "--topic", yard["id"], "--json", MEMSTATE_POLICY_RULES=rules).document
    assert facts["rule"]["name"] == "old"
    assert facts["lines"][-1] == "It is archived in the next run, since rule 'old' asks for it."


def test_times_on_the_command_line_are_utc() -> None:
    assert parse_moment("2026-03-01").isoformat() == "2026-03-01T00:00:00+00:00"
