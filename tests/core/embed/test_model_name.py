"""The name on record of a model holds its prefixes, and a model without them keeps its plain name."""

from __future__ import annotations

import pytest

from memstate_core.embed.model_name import ModelName


def test_a_model_without_prefixes_keeps_its_name() -> None:
    assert str(ModelName("all-MiniLM-L6-v2")) == "all-MiniLM-L6-v2"
    assert ModelName.parsed("/models/é") == ModelName("/models/é")


@pytest.mark.parametrize("prefixes", [("query: ", "passage: "), ("Frage 问 ", ""), ("", '"{}\\'), ("x", "x")])
def test_prefixes_are_read_back_from_the_name_on_record(prefixes: tuple[str, str]) -> None:
    name = ModelName("/models/e5", *prefixes)
    assert ModelName.parsed(str(name)) == name
    assert str(name) != str(ModelName("/models/e5"))
    assert str(name) != str(ModelName("/models/e5", *reversed(prefixes))) or prefixes[0] == prefixes[1]


@pytest.mark.parametrize("folder", ["{models}", '{"model": 1, "more": 2}', "{}"])
def test_a_folder_with_braces_is_a_name(folder: str) -> None:
    assert ModelName.parsed(folder) == ModelName(folder)
