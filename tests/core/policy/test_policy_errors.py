"""Errors in a policy's file name the line and the column, in whatever way the TOML is laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memstate_core.model.errors import SettingsError
from memstate_core.policy.settings import FILE_NAME, Policy, load_policy, load_settings
from memstate_core.policy.toml_positions import line_and_column, positions

HEADER = "[[policy.rules]]\n"
RULE = HEADER + 'name = "a"\non = "nightly"\nwhen = "true"\ndo = "pin"\n'


def refused(home: Path, toml: str, **environ: str) -> dict[str, Any]:
    (home / FILE_NAME).write_text(toml, encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        load_settings(home, environ)
    facts = error.value.facts
    where = f": line {facts['line']}, column {facts['column']}" if facts["line"] else ""
    said = f"{facts['source']}{where}: {facts['key']} = {facts['value']!r} is not allowed: {facts['allowed']}"
    assert str(error.value) == said
    return facts


def place(toml: str) -> tuple[str, int, int]:
    """The text without its mark ▶, and the line and column of what follows the mark."""
    before, after = toml.split("▶")
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


MARKED = {
    "a basic string": 'when = "salience < ▶\'x\'"',
    "a literal string": "when = 'salience < ▶\"x\"'",
    "no spaces": "when='salience<▶\"x\"'",
    "a quoted key": '"when" = "salience < ▶\'x\'"',
    "an escaped key": '"wh\\u0065n" = "salience < ▶\'x\'"',
    "escapes before it": r'when = "title == \"\u00e9\U0001F600\\\" and salience < ▶\"x\""',
    "characters that are wide": "when = 'title == \"é\U0001f600\" and salience < ▶\"x\"'",
    "several lines": "when = '''\n  title == \"a\"\n  and salience < ▶\"x\"\n'''",
    "several basic lines": 'when = """title == \'a\'\n  and salience < ▶\'x\'"""',
    "folded lines": 'when = """\\\n   title == \'a\' \\\n\n  and salience < ▶\'x\'"""',
    "quotes before the end": "when = \"\"\"salience < ▶\"x\"\"\"\"",
    "a comment behind": 'when = "salience < ▶\'x\'" # when = "y"',
    "the end of the condition": 'when = "salience <▶"',
    "the end, over several lines": 'when = """\nsalience <▶"""',
}  # fmt: skip


@pytest.mark.parametrize("line", MARKED.values(), ids=MARKED)
def test_a_condition_is_pointed_into(line: str, tmp_path: Path) -> None:
    toml, row, column = place(RULE + '\n[[policy.rules]]\nname = "b"\n' + line + '\non = "nightly"\ndo = "pin"\n')
    facts = refused(tmp_path, toml)
    assert (facts["key"], facts["line"], facts["column"]) == ("policy.rules[1].when", row, column)
    assert facts["source"] == str(tmp_path / FILE_NAME)
    assert facts["allowed"].startswith("found ")


LAYOUTS = {
    "comments that look like headers": "# [[policy.rules]]\n[policy] # [[policy.rules]]\n" + RULE + HEADER,
    "strings that look like headers": "[policy]\npinned_kinds = ['''\n[[policy.rules]]\n''', '#[']\n" + RULE + HEADER,
    "space within the header": RULE + '  [[ policy . "rules" ]]  # b\n',
    "other tables between": RULE + "[store]\nshards = 1\n[[policy.overrides]]\nscope = 'user:a'\n" + HEADER,
    "windows line ends": (RULE + HEADER).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_right_table_is_found(layout: str, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes((layout + 'name = "b"\non = "daily"\nwhen = "true"\ndo = "pin"').encode())
    with pytest.raises(SettingsError) as error:
        load_settings(tmp_path, {})
    facts = error.value.facts
    assert (facts["key"], facts["value"]) == ("policy.rules[1].on", "daily")
    assert (facts["line"], facts["column"]) == (layout.count("\n") + 2, len("on = ") + 1)


INLINE = '{name = "a", on = "nightly", when = "true", do = "pin"}'


@pytest.mark.parametrize(
    "toml",
    [
        f"[policy]\nrules = [{INLINE},\n # {{\n  {{name = 'b', when = 'title < ▶3', on = 'nightly', do = 'pin'}}]",
        f"policy.rules = [ {INLINE}, {{name = 'b', when = '▶sal', on = 'nightly', do = 'pin'}} ]",
        f"policy = {{rules = [{INLINE}, {{name = 'b', when = '▶sal', on = 'nightly', do = 'pin'}}]}}",
    ],
)
def test_arrays_of_inline_tables_are_entered(toml: str, tmp_path: Path) -> None:
    text, row, column = place(toml)
    facts = refused(tmp_path, text)
    assert (facts["key"], facts["line"], facts["column"]) == ("policy.rules[1].when", row, column)


@pytest.mark.parametrize(
    ("toml", "key", "allowed"),
    [
        ("[[policy.rules]]\nname = 'b'\nwhen = ▶3\non = 'nightly'\ndo = 'pin'", "policy.rules[0].when", "valid string"),
        ("▶[[policy.rules]]\nname = 'b'\nwhen = 'true'\ndo = 'pin'", "policy.rules[0].on", "Field required"),
        (RULE + "then = ▶'x'", "policy.rules[0].then", "unknown key; known here: name, on, when, do, merge_prob"),
        (RULE + RULE.replace('"a"', '▶"a"'), "policy.rules[1].name", "another rule before it has this name"),
        (RULE + "merge_probability = ▶0.9", "policy.rules[0].merge_probability", 'only a rule with do = "merge"'),
        (RULE.replace('"pin"', '▶"merge"'), "policy.rules[0].do", "a merge rule sets merge_probability"),
        (RULE.replace('"pin"', '"merge"\nreview_probability = ▶0.95'), "policy.rules[0].review_probability",
         "review_probability (0.95) must not exceed merge_probability (0.9)"),
        ("▶[policy.rules]\nname = 'b'", "policy.rules",
         "expected an array, or for tables a header in double brackets"),
        ("[[policy.overrides]]\nscope = 'user:a'\n▶[[policy.overrides]]\ndetach_salience_threshold = 1",
         "policy.overrides[1]", "an override names a scope, a topic_kind, or both"),
        ("[[policy.overrides]]\nscope = 'user:a'\nsalience_half_life_days = ▶-1",
         "policy.overrides[0].salience_half_life_days", "greater than 0"),
        ("[[policy.overrides]]\nscope = ▶''", "policy.overrides[0].scope", "at least 1 character"),
        ("[[policy.overrides]]\nscop = ▶'a'", "policy.overrides[0].scop", "unknown key; known here: scope, topic_kind"),
        ("[policy]\n# \u00e9\npinned_kinds = ['deal',\n  ▶3]", "policy.pinned_kinds[1]", "valid string"),
        ("[policy]\nconflict_rule = ▶'loudest'", "policy.conflict_rule", "'newest' or 'confidence'"),
        ("policy.conflict_rule   =   ▶'loudest'", "policy.conflict_rule", "'newest' or 'confidence'"),
        ("[store]\n\n[policy]\nreview_probability = ▶1", "policy", "review_probability must not exceed"),
        ("[policy]\ndetach_salience_threshold = ▶0.01", "policy",
         "forget_salience_threshold must not exceed detach_salience_threshold: found 0.05 (the default) and 0.01;"
         " set forget_salience_threshold to 0.01 or less"),
        ("[policy]\nsummarise_salience_threshold = ▶0.01", "policy",
         "detach_salience_threshold must not exceed summarise_salience_threshold: found 0.1 (the default) and 0.01"),
        ("[store]\nshard = ▶1", "store.shard", "unknown key; known here: shards"),
        ("[store]\n ▶[stor]", "stor", "unknown key; known here: store, ingest"),
        ("\nshards = ▶1", "shards", "expected a section of [store]"),
    ],
)  # fmt: skip
def test_other_errors_name_their_line_and_column_too(toml: str, key: str, allowed: str, tmp_path: Path) -> None:
    text, row, column = place(toml)
    facts = refused(tmp_path, text)
    assert (facts["key"], facts["line"], facts["column"]) == (key, row, column)
    assert allowed in facts["allowed"]


@pytest.mark.parametrize(
    "off",
    ["summarise_salience_threshold = 0", "forget_salience_threshold = 0\ndetach_salience_threshold = 0"],
)
def test_a_threshold_of_0_switches_a_step_off_as_the_guide_says(off: str, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(f"[policy]\n{off}\n")
    assert load_settings(tmp_path, {}).policy.salience_half_life_days == 90


def test_a_broken_file_keeps_the_position_that_the_parser_gives(tmp_path: Path) -> None:
    facts = refused(tmp_path, "[[policy.rules]]\nname = \n")
    assert "(at line 2, column 8)" in facts["allowed"]
    assert "too long" not in refused(tmp_path, "a = " + "[" * 100_000)["allowed"]


# Variables


def test_a_variable_is_no_place_in_the_file(tmp_path: Path) -> None:
    rules = f"[{INLINE}, {{name = 'b', when = 'salience < \"x\"', on = 'nightly', do = 'pin'}}]"
    facts = refused(tmp_path, RULE, MEMSTATE_POLICY_RULES=rules)
    assert (facts["source"], facts["line"]) == ("environment variable MEMSTATE_POLICY_RULES", None)
    assert facts["key"] == "policy.rules[1].when"
    assert facts["allowed"].startswith("at column 12 of the condition: found")


def test_rules_may_come_from_a_variable(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, {"MEMSTATE_POLICY_RULES": f"[{INLINE}]"})
    assert [rule.name for rule in settings.policy.rules] == ["a"]


# A file with a policy and nothing else


def test_a_policy_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "stricter.toml"
    path.write_text("[policy]\npinned_kinds = ['deal']\n" + RULE + "[[policy.overrides]]\nscope = 'user:a'\n", "utf-8")
    policy = load_policy(path)
    assert (policy.pinned_kinds, policy.rules[0].name, policy.overrides[0].scope) == (("deal",), "a", "user:a")
    assert policy.salience_half_life_days == Policy().salience_half_life_days
    path.write_text(RULE, "utf-8")
    assert len(load_policy(path).rules) == 1


@pytest.mark.parametrize(
    ("toml", "key", "allowed", "where"),
    [
        ("[policy]\n[store]\nshards = 1", "store", "unknown key; known here: policy", (2, 1)),
        ("policy = 3", "policy", "expected a section of [policy]", (1, 10)),
        ("", "policy", "Field required", (None, None)),
        ("[policy", "the file", "expected TOML", (None, None)),
        (RULE.replace("true", "tru"), "policy.rules[0].when", "did you mean true?", (4, 9)),
    ],
)
def test_what_is_not_allowed_in_a_policy_file(
    toml: str, key: str, allowed: str, where: tuple[int | None, int | None], tmp_path: Path
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(toml, "utf-8")
    with pytest.raises(SettingsError) as error:
        load_policy(path)
    facts = error.value.facts
    assert (facts["source"], facts["key"], (facts["line"], facts["column"])) == (str(path), key, where)
    assert allowed in facts["allowed"]


def test_a_policy_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(SettingsError, match="expected a file to read") as error:
            load_policy(path)
        assert error.value.facts["source"] == str(path)


# The scanner


def test_every_value_of_a_file_is_found() -> None:
    text = (
        "a.b = 1979-05-27 07:32:00 # c\n['x.y'.z]\nq = [[1, 2], {r = '''\n]'''}, ]\n"
        '[[l]]\n[l.m]\nn = true\n[[l.o]]\n[[l.o]]\np = ""\n[[l]]\n[l.m]\n'
    )
    found = {steps: line_and_column(text, offset) for steps, offset in positions(text).items()}
    assert found == {
        ("a", "b"): (1, 7),
        ("x.y", "z"): (2, 1),
        ("x.y", "z", "q"): (3, 5),
        ("x.y", "z", "q", 0): (3, 6),
        ("x.y", "z", "q", 0, 0): (3, 7),
        ("x.y", "z", "q", 0, 1): (3, 10),
        ("x.y", "z", "q", 1): (3, 14),
        ("x.y", "z", "q", 1, "r"): (3, 19),
        ("l",): (5, 1),
        ("l", 0): (5, 1),
        ("l", 0, "m"): (6, 1),
        ("l", 0, "m", "n"): (7, 5),
        ("l", 0, "o"): (8, 1),
        ("l", 0, "o", 0): (8, 1),
        ("l", 0, "o", 1): (9, 1),
        ("l", 0, "o", 1, "p"): (10, 5),
        ("l", 1): (11, 1),
        ("l", 1, "m"): (12, 1),
    }
