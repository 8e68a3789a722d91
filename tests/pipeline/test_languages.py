"""Chats in German, Portuguese, Chinese and all three, by a model with prefixes that sentence-transformers saved.

Whether questions find paraphrases in these languages is measured (`tests/benchmarks/languages.py`). Here a store goes
from the dump to answers: the model lies in the home, runs on OpenVINO with its prefixes, and the words of a turn find
it.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memstate_core.embed.sentence_model import PACKAGED_MODEL, load
from tests.pipeline.conftest import run_memstate

pytestmark = pytest.mark.slow
LANGUAGES = ("de", "pt", "zh")
MIXED = {"type": "user", "id": "mixed"}
NIGHT = "2025-04-12T02:00:00Z"
SETTINGS = '[embedding]\nmodel = "models/saved"\nquery_prefix = "query: "\npassage_prefix = "passage: "\n'
TURNS, ASKED = 50, 4
"""Turns and questions of each chat."""


@pytest.fixture
def chats(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    return import_module("language_chats")


def mixed(turns: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The same story, each turn in the next language."""
    story = [turns[at % len(turns)][at] for at in range(len(turns[0]))]
    return [
        {**turn, "scope": MIXED, "actor": "J", "observation_id": f"mixed/{at}", "session_id": turn["session_id"][3:]}
        for at, turn in enumerate(story)
    ]


def some_words(text: str) -> str:
    """The longer half of a turn, at a word's end where it has several words."""
    words = text.split()
    return " ".join(words[len(words) // 2 :]) if len(words) > 3 else text[len(text) // 2 :]


def test_the_words_of_a_turn_find_it_in_any_language(
    chats: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home, turns = tmp_path / "home", [chats.chat(language).turns[:TURNS] for language in LANGUAGES]
    load(PACKAGED_MODEL, "cpu").save(str(home / "models" / "saved"))
    (home / "memstate.toml").write_text(SETTINGS)
    of_all = [*turns, mixed(turns)]
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(turn) + "\n" for chat in of_all for turn in chat))
    assert run_memstate(home, "import", str(path), "--now", NIGHT).code == 0
    night = run_memstate(home, "maintain", "--now", NIGHT, "--json").document
    assert night["counts"]["evidence"] == sum(map(len, of_all))
    for chat in of_all:
        scope = f"{chat[0]['scope']['type']}:{chat[0]['scope']['id']}"
        asked = sorted(chat, key=lambda turn: len(turn["text"]))[-ASKED:]
        for turn in asked:
            answer = run_memstate(home, "query", some_words(turn["text"]), "--scope", scope, "--json").document
            found = [each["observation_id"] for each in answer["evidence"]]
            assert turn["observation_id"] in found[:3], (turn["text"], found)
    doctor = run_memstate(home, "doctor", "--json").document
    (model,) = [finding["detail"] for finding in doctor if finding["name"] == "model"]
    assert "models/saved; run by OpenVINO 20" in model.replace(f", in {home}/models/saved", "")
    assert run_memstate(home, "verify").code == 0
