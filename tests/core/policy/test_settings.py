"""Settings: variables over the file over defaults, and errors with place, value and allowed values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster
import pytest
from pydantic import BaseModel, ValidationError

from memstate_core.model.errors import SettingsError
from memstate_core.policy.rules import Rule
from memstate_core.policy.settings import FILE_NAME, Override, Policy, Settings, load_policy, load_settings
from memstate_core.policy.template import literal
from memstate_core.policy.toml_edit import with_keys


def load(home: Path, toml: str = "", **environ: str) -> Settings:
    if toml:
        (home / FILE_NAME).write_text(toml, encoding="utf-8")
    return load_settings(home, environ)


def refused(home: Path, toml: str = "", **environ: str) -> dict[str, Any]:
    """The facts of the error: source, key, value, allowed; each is in its message too."""
    with pytest.raises(SettingsError) as error:
        load(home, toml, **environ)
    facts = error.value.facts
    assert error.value.exit_code == 2
    where = f": line {facts['line']}, column {facts['column']}" if facts["line"] else ""
    said = f"{facts['source']}{where}: {facts['key']} = {facts['value']!r} is not allowed: {facts['allowed']}"
    assert str(error.value) == said
    return facts


# Where a value comes from


def test_without_a_file_every_default_holds(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()
    assert load(tmp_path / "nowhere") == Settings()


def test_the_defaults_of_the_design() -> None:
    policy = Policy()
    assert (policy.field_salience_max, policy.forget_salience_threshold) == (10, 0.05)
    assert (policy.topic_count_soft_limit, policy.max_active_topics) == (500, 100_000)
    assert policy.conflict_rule == "newest"


def test_the_file_is_read_and_leaves_the_rest_at_its_default(tmp_path: Path) -> None:
    settings = load(tmp_path, '[store]\nshards = 4\n[policy]\nplacement_similarity = 0.8\n[embedding]\nmodel = "é"')
    assert (settings.store.shards, settings.policy.placement_similarity, settings.embedding.model) == (4, 0.8, "é")
    assert settings.store.keep_snapshots == Settings().store.keep_snapshots


def test_a_byte_order_mark_before_the_file_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text("[ingest]\nchunk_rows = 700\n", encoding="utf-8-sig")
    assert load_settings(tmp_path, {}).ingest.chunk_rows == 700
    path.write_bytes(with_keys(path, "store", {"niceness": 0}))
    assert load_settings(tmp_path, {}).store.niceness == 0
    assert "chunk_rows = 700" in path.read_text(encoding="utf-8")
    path.write_text("[ingest]\nchunk_rows = -7\n", encoding="utf-8-sig")
    with pytest.raises(SettingsError, match="line 2, column 14"):
        load_settings(tmp_path, {})
    path.write_text("[policy]\nsalience_half_life_days = 3.0\n", encoding="utf-8-sig")
    assert load_policy(path).salience_half_life_days == 3.0


def test_a_variable_wins_over_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, "[store]\nshards = 4\nkeep_snapshots = 3", MEMSTATE_STORE_SHARDS="8")
    assert (settings.store.shards, settings.store.keep_snapshots) == (8, 3)


def test_every_setting_has_a_variable(tmp_path: Path) -> None:
    """Given its default as TOML writes it, a variable changes nothing; given an invalid value, the error names it."""
    for section, part in Settings():
        assert isinstance(part, BaseModel)
        for key, value in part:
            variable = f"MEMSTATE_{section}_{key}".upper()
            assert load(tmp_path, **{variable: literal(value)}) == Settings()
            if not isinstance(value, str):
                facts = refused(tmp_path, **{variable: "junk"})
                assert (facts["source"], facts["key"]) == (f"environment variable {variable}", f"{section}.{key}")


def test_a_variable_known_from_memstate_keeps_its_name(tmp_path: Path) -> None:
    settings = load(tmp_path, "[policy]\nfield_salience_max = 9", MEMSTATE_FIELD_SALIENCE_MAX="5")
    assert settings.policy.field_salience_max == 5
    facts = refused(tmp_path, MEMSTATE_FIELD_SALIENCE_MAX="50")
    assert facts["source"] == "environment variable MEMSTATE_FIELD_SALIENCE_MAX"
    assert (facts["key"], facts["value"]) == ("policy.field_salience_max", 50)


@pytest.mark.parametrize("section", [*(type(part) for _, part in Settings()), Override, Rule, Settings])
def test_every_setting_describes_itself(section: type[BaseModel]) -> None:
    """The settings reference is generated from these descriptions."""
    assert section.__doc__
    for key, field in section.model_fields.items():
        assert field.description, f"{section.__name__}.{key}"
        assert field.description.endswith("."), f"{section.__name__}.{key}"


def test_settings_cannot_be_changed_once_read() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().store.shards = 2


# What is not allowed


def test_an_unknown_key_is_named_with_those_known_beside_it(tmp_path: Path) -> None:
    facts = refused(tmp_path, "[store]\nshard = 4")
    assert facts["source"] == str(tmp_path / FILE_NAME)
    assert (facts["key"], facts["value"]) == ("store.shard", 4)
    known = (
        "shards, keep_snapshots, keep_snapshot_days, keep_snapshot_mib, graph_buffer_mib, memory_mib, "
        "lock_wait_seconds, nights_at_once, search_processes, niceness, url, lease_seconds, checkout_mib"
    )
    assert facts["allowed"] == f"unknown key; known here: {known}"


def test_a_section_with_a_typo_is_named_with_the_known_ones(tmp_path: Path) -> None:
    facts = refused(tmp_path, "[polcy]\nplacement_similarity = 0.8")
    assert facts["source"] == str(tmp_path / FILE_NAME)
    assert (facts["key"], facts["value"]) == ("polcy", {"placement_similarity": 0.8})
    assert facts["allowed"] == "unknown key; known here: " + ", ".join(Settings.model_fields)


@pytest.mark.parametrize("toml", ["shards = 4", "[[store]]\nshards = 4", "store = 4"])
def test_the_error_of_a_key_outside_a_section_names_the_sections(tmp_path: Path, toml: str) -> None:
    facts = refused(tmp_path, toml)
    assert facts["key"] in ("shards", "store")
    assert facts["allowed"].startswith("expected a section of [store], [ingest]")


@pytest.mark.parametrize(
    ("toml", "key", "value", "allowed"),
    [
        ('[store]\nshards = "four"', "store.shards", "four", "valid integer"),
        ("[store]\nshards = 1.5", "store.shards", 1.5, "valid integer"),
        ("[store]\nshards = [1]", "store.shards", [1], "valid integer"),
        ('[policy]\nplacement_similarity = "high"', "policy.placement_similarity", "high", "valid number"),
        ("[embedding]\nmodel = 7", "embedding.model", 7, "valid string"),
        ("[store]\nshards = 0", "store.shards", 0, "greater than or equal to 1"),
        ("[store]\nshards = 257", "store.shards", 257, "less than or equal to 256"),
        ("[policy]\nplacement_similarity = 1.01", "policy.placement_similarity", 1.01, "less than or equal to 1"),
        ("[policy]\nsalience_half_life_days = 0", "policy.salience_half_life_days", 0, "greater than 0"),
        ("[policy]\nsalience_half_life_days = inf", "policy.salience_half_life_days", float("inf"), "36500"),
        ('[policy]\nconflict_rule = "loudest"', "policy.conflict_rule", "loudest", "'newest' or 'confidence'"),
        ('[embedding]\nmodel = ""', "embedding.model", "", "at least 1 character"),
    ],
)
def test_a_wrong_type_or_range_is_named(tmp_path: Path, toml: str, key: str, value: Any, allowed: str) -> None:
    facts = refused(tmp_path, toml)
    assert (facts["source"], facts["key"], facts["value"]) == (str(tmp_path / FILE_NAME), key, value)
    assert allowed in facts["allowed"]


@pytest.mark.parametrize(
    ("cron", "found"),
    [
        ("a b c d e", "[a b c d e] is not acceptable"),
        ("60 2 * * *", "out of range"),
        ("*/0 * * * *", "step '0' in field 0"),
        ("0 0 31 4 *", "Day(s) [31] can never occur in month(s) [4]"),
        ("hourly", "found 1 field"),
        ("@daily", "found 1 field"),
        ("0 2 * * * *", "found 6 fields"),
        ("", "found 0 fields"),
    ],
)
def test_a_cron_expression_that_never_comes_due_is_refused_with_an_example(
    tmp_path: Path, cron: str, found: str
) -> None:
    facts = refused(tmp_path, f'[schedule]\ncron = "{cron}"')
    assert (facts["key"], facts["value"], facts["line"]) == ("schedule.cron", cron, 2)
    assert found in facts["allowed"]
    assert "expected five fields (minute, hour, day of month, month, day of week)" in facts["allowed"]
    assert facts["allowed"].endswith("such as '0 2 * * *' for 02:00 every day")


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe"])
def test_a_time_zone_that_does_not_exist_is_refused_with_an_example(tmp_path: Path, name: str) -> None:
    facts = refused(tmp_path, f'[schedule]\ntime_zone = "{name}"')
    assert (facts["key"], facts["value"], facts["line"]) == ("schedule.time_zone", name, 2)
    assert facts["allowed"].endswith("expected an IANA name, such as 'Europe/Berlin'")


@pytest.mark.parametrize("cron", ["*/15 * * * *", "0 2 * * mon-fri", "0 2 L * *", "30 4 1,15 * sun#2", "0 0 29 2 *"])
def test_cron_expressions_that_dagster_can_schedule_are_accepted(tmp_path: Path, cron: str) -> None:
    assert load(tmp_path, f'[schedule]\ncron = "{cron}"').schedule.cron == cron
    assert load(tmp_path, MEMSTATE_SCHEDULE_CRON=cron).schedule.cron == cron
    dagster.ScheduleDefinition(job_name="nightly", cron_schedule=cron)


def test_not_a_number_is_no_number(tmp_path: Path) -> None:
    assert refused(tmp_path, "[policy]\nforget_salience_threshold = nan")["key"] == "policy.forget_salience_threshold"


@pytest.mark.parametrize("value", ["true", '"4"'])
def test_a_boolean_or_a_text_in_the_file_is_no_integer(tmp_path: Path, value: str) -> None:
    assert refused(tmp_path, f"[store]\nshards = {value}")["key"] == "store.shards"


@pytest.mark.parametrize("content", [b"[store", b"\xff\xfe", b"[store]\nshards = 4\n[store]\nshards = 5"])
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    facts = refused(tmp_path)
    assert facts["source"] == str(tmp_path / FILE_NAME)
    assert facts["allowed"].startswith("expected TOML: ")


# Limits that contradict each other

SOFT_OVER_BOUND = "[policy]\ntopic_count_soft_limit = 200\nmax_active_topics = 100"


def test_limits_in_conflict_are_named_with_their_values(tmp_path: Path) -> None:
    facts = refused(tmp_path, SOFT_OVER_BOUND)
    assert (facts["source"], facts["key"]) == (str(tmp_path / FILE_NAME), "policy")
    assert facts["value"] == {"topic_count_soft_limit": 200, "max_active_topics": 100}
    assert "topic_count_soft_limit must not exceed max_active_topics" in facts["allowed"]


@pytest.mark.parametrize("given", ["min_turns = 50\nmax_turns = 3", "min_turns = 25", "max_turns = 3"])
def test_the_shortest_segment_is_not_longer_than_the_longest(tmp_path: Path, given: str) -> None:
    (tmp_path / "memstate.toml").write_text(f"[segment]\n{given}\n")
    with pytest.raises(SettingsError, match=r"min_turns \(\d+\) must not exceed max_turns \(\d+\)"):
        load_settings(tmp_path, {})


def test_a_limit_conflicts_with_a_default_too(tmp_path: Path) -> None:
    assert refused(tmp_path, "[policy]\nmax_active_topics = 100")["key"] == "policy"
    assert load(tmp_path, SOFT_OVER_BOUND, MEMSTATE_POLICY_MAX_ACTIVE_TOPICS="200").policy.max_active_topics == 200


def test_a_variable_that_brings_the_conflict_is_named(tmp_path: Path) -> None:
    assert "MEMSTATE_POLICY_MAX_ACTIVE_TOPICS" in refused(tmp_path, MEMSTATE_POLICY_MAX_ACTIVE_TOPICS="100")["source"]


def test_the_rule_for_conflicts_is_read_from_file_and_variable(tmp_path: Path) -> None:
    assert load(tmp_path, '[policy]\nconflict_rule = "confidence"').policy.conflict_rule == "confidence"
    assert load(tmp_path, MEMSTATE_POLICY_CONFLICT_RULE="newest").policy.conflict_rule == "newest"


# The hash of a policy


def test_the_hash_follows_the_values_and_not_how_they_were_written(tmp_path: Path) -> None:
    written = load(tmp_path, "[policy]\nplacement_similarity = 0.750\nfield_salience_max = 10")
    assert written.policy.digest() == Policy().digest()
    assert Policy(placement_similarity=0.8).digest() != Policy().digest()


def test_a_policy_on_record_may_have_keys_of_earlier_versions() -> None:
    recorded = Policy().model_dump(mode="json") | {"merge_similarity": 0.9}
    assert Policy.recorded(recorded) == Policy()


def test_the_review_band_lies_below_the_merge_band(tmp_path: Path) -> None:
    facts = refused(tmp_path, "[policy]\nmerge_probability = 0.6\nreview_probability = 0.7")
    assert "review_probability must not exceed merge_probability" in facts["allowed"]


# Variables that set nothing


@pytest.mark.parametrize(
    ("variable", "key", "nearest"),
    [
        ("MEMSTATE_STORE_SHARD", "store.shard", "MEMSTATE_STORE_SHARDS"),
        ("MEMSTATE_POLICY_MERGE_PROBABLITY", "policy.merge_probablity", "MEMSTATE_POLICY_MERGE_PROBABILITY"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest(tmp_path: Path, variable: str, key: str, nearest: str) -> None:
    facts = refused(tmp_path, **{variable: "4"})
    assert (facts["source"], facts["key"], facts["value"]) == (f"environment variable {variable}", key, "…")
    assert f"did you mean {nearest}? Known here: " in facts["allowed"]


@pytest.mark.parametrize(
    "variable",
    [
        *("MEMSTATE_HOME", "MEMSTATE_API_KEY", "MEMSTATE_UID", "MEMSTATE_OF_MINE", "MEMSTATE_SMTP_PASSWORD"),
        *(
            "MEMSTATE_UI_SERVICE_HOST",
            "MEMSTATE_UI_PORT",
            "MEMSTATE_UI_PORT_80_TCP_ADDR",
        ),
    ],
)
def test_other_variables_are_none_of_the_settings(tmp_path: Path, variable: str) -> None:
    assert load(tmp_path, **{variable: "x"}) == Settings()


def test_a_variable_that_holds_a_secret_may_be_called_like_a_setting(tmp_path: Path) -> None:
    toml = '[extractor]\napi_key_env = "MEMSTATE_EXTRACTOR_API_KEY"'
    assert load(tmp_path, toml, MEMSTATE_EXTRACTOR_API_KEY="secret").extractor.api_key_env
    (tmp_path / FILE_NAME).unlink()
    assert "secret" not in str(refused(tmp_path, MEMSTATE_EXTRACTOR_API_KEY="secret"))


# Messages


@pytest.mark.parametrize("key", ["store.url", "publish.url", "publish.writer_url", "embedding.endpoint", "ui.api_url"])
@pytest.mark.parametrize("url", ["s3://key:secret@bucket/x", "https://host/x?token=secret", "ftp://a:b:secret@host"])
def test_a_refused_url_is_shown_without_secrets(tmp_path: Path, key: str, url: str) -> None:
    section, name = key.split(".")
    facts = refused(tmp_path, f"[{section}]\n{name} = {url!r}")
    assert (facts["key"], "secret" in str(facts)) == (key, False)
    variable = f"MEMSTATE_{section}_{name}".upper()
    assert "secret" not in str(refused(tmp_path, **{variable: url}))


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ('[notify]\nmail_to = ["oncall"]', "expected an e-mail address such as oncall@example.org"),
        ('[ui]\napi_url = "127.0.0.1"', "expected a URL such as http://127.0.0.1:8420, without"),
        ('[ui]\nowners = ["me"]', "expected an e-mail address, or team: and a name such as team:memory"),
        ('[store]\nurl = "bucket"', "expected an address such as s3://bucket/prefix"),
        ('[publish]\nwriter_url = "here"', "expected a URL such as https://memory.example.org:8420"),
        ('[extractor]\napi_key_env = "sk-1"', "expected the name of an environment variable in capital letters"),
        ("[policy]\nsalience_half_life_days = nan", "expected a finite number"),
    ],
)
def test_an_expected_form_is_named_in_words(tmp_path: Path, toml: str, expected: str) -> None:
    allowed = refused(tmp_path, toml)["allowed"]
    assert allowed.startswith(expected)
    assert "^" not in allowed


def test_limits_in_conflict_are_named_where_one_is_given(tmp_path: Path) -> None:
    facts = refused(tmp_path, "[policy]\nsalience_half_life_days = 5\n\nmax_active_topics = 1")
    assert (facts["line"], facts["column"]) == (4, 21)
    assert facts["allowed"] == (
        "topic_count_soft_limit must not exceed max_active_topics: found 500 (the default) and 1; "
        "set topic_count_soft_limit to 1 or less"
    )
