"""Which times questions in other languages than English name, and which words only look like dates."""

# ruff: noqa: RUF001 (Chinese has marks of its own)

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from memstate_core.retrieve.query import STAGES, Question, answer
from memstate_core.retrieve.question.chinese_dates import number
from memstate_core.retrieve.question.local_dates import local_spans
from memstate_core.retrieve.question.question_language import languages_of
from tests.core.retrieve.conftest import Store, day

ASKED = datetime(2025, 4, 11, 12, tzinfo=UTC)  # a Friday
APRIL, MARCH = ("2025-04-01", 30), ("2025-03-01", 31)
LAST_WEEK = ("2025-03-31", 7)


def days(text: str, asked_at: datetime | None = ASKED) -> list[tuple[str, int]]:
    spans, _ = local_spans(text, asked_at, [2025])
    return [(span.start.strftime("%Y-%m-%d"), (span.end - span.start).days) for span in spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Was hat Jana am 14. März gekocht?", [("2025-03-14", 1)]),
        ("Was hat er am 3. April 2024 und im März gesagt?", [("2024-04-03", 1), MARCH]),
        ("Was war im April 2023?", [("2023-04-01", 30)]),
        ("Was geschah am 14.3.2024, was am 5.4.?", [("2024-03-14", 1), ("2025-04-05", 1)]),
        ("Was war gestern und was vorgestern?", [("2025-04-10", 1), ("2025-04-09", 1)]),
        ("Was hat sie letzte Woche gemacht?", [LAST_WEEK]),
        ("Wer kam in der vergangenen Woche zu ihm?", [LAST_WEEK]),
        ("Was hat sie letzten Monat oder letztes Jahr gemacht?", [MARCH, ("2024-01-01", 366)]),
        ("Was war vor drei Wochen?", [("2025-03-17", 7)]),
        ("Was war vor 2 Monaten los?", [("2025-02-01", 28)]),
        ("Was ist ihr am letzten Dienstag passiert?", [("2025-04-08", 1)]),
        ("Was hat er am Freitag und was diesen Freitag gesagt?", [("2025-04-11", 1), ("2025-04-04", 1)]),
        ("O que cozinhou a Joana no dia 14 de março?", [("2025-03-14", 1)]),
        ("O que fez ele a 5 de abril de 2024 e em março?", [("2024-04-05", 1), MARCH]),
        ("O que aconteceu no 14/03/2024?", [("2024-03-14", 1)]),
        ("Com que se aborreceu o Tiago ontem?", [("2025-04-10", 1)]),
        ("O que começou ele na semana passada?", [LAST_WEEK]),
        ("O que a Joana comprou há três semanas e há 2 dias?", [("2025-04-09", 1), ("2025-03-17", 7)]),
        ("O que fez ela no domingo passado?", [("2025-04-06", 1)]),
        ("O que lhe aconteceu na terça-feira?", [("2025-04-08", 1)]),
        ("O que disse ele na última quinta-feira?", [("2025-04-10", 1)]),
        ("佳宁3月14日做了什么菜？", [("2025-03-14", 1)]),
        ("陈涛2024年三月十四号烤了什么？", [("2024-03-14", 1)]),
        ("佳宁三月买了什么？四月呢？", [MARCH, APRIL]),
        ("十一月她去了哪里？", [("2025-11-01", 30)]),
        ("2024年11月呢？", [("2024-11-01", 30)]),
        ("陈涛昨天和前天为什么烦恼？", [("2025-04-10", 1), ("2025-04-09", 1)]),
        ("陈涛上周做什么了？", [LAST_WEEK]),
        ("上周日和这周二出了什么事？", [("2025-04-06", 1), ("2025-04-08", 1)]),
        ("上上个星期天呢？", [("2025-03-30", 1)]),
        ("星期五他做了什么？", [("2025-04-04", 1)]),
        ("三周前她买了什么？两个月前呢？", [("2025-03-17", 7), ("2025-02-01", 28)]),
        ("上个月和去年她去了哪里？", [MARCH, ("2024-01-01", 366)]),
        ("Qu'a fait Jeanne le 14 mars et hier ?", [("2025-03-14", 1), ("2025-04-10", 1)]),
        ("¿Qué hizo Juana ayer y el 5 de abril?", [("2025-04-05", 1), ("2025-04-10", 1)]),
        ("Wat deed Jan vorige week en op 5 april?", [("2025-04-05", 1), LAST_WEEK]),
        ("Что она делала вчера и 5 апреля?", [("2025-04-05", 1), ("2025-04-10", 1)]),
    ],
)
def test_times_that_a_question_names(text: str, expected: list[tuple[str, int]]) -> None:
    assert sorted(days(text)) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    [
        # German: Mai, August and März are names, too; so is "so", and "Do" only abbreviates a weekday
        "Was hat Mai über so viel Arbeit gesagt?",
        "Wer hat so viel Geduld, und was macht die Mai so?",
        "Hat August nach Juli gefragt, und wo wohnt Frau März?",
        "Do, Di und Mi: was heißt das?",
        "Wie lief die Halbzeit 2 März gegen Mai?",
        "Welche Version 3.11.2 lief auf dem Rechner?",
        "Was hat er jeden Morgen gemacht, was macht er dienstags?",
        "Was passiert morgen und nächste Woche?",
        # Portuguese: terça and segunda are ordinals, quinta a farm, mar the sea, sex and set words, Domingo a name
        "O que é a terça parte da herança?",
        "Quem ficou na segunda posição, e quem mora na quinta?",
        "O que disse o Domingo sobre o mar e o set de dez peças?",
        "Mais mai mai, o que é isso?",
        "O que fazem eles amanhã?",
        # Chinese: where two words meet, and numbers of months and times
        "晚上周杰伦唱了什么？晚上周先生来了吗？",
        "如今天气怎么样？眼前天色怎么样？",
        "晚上月亮怎么样？",
        "失去年轻的感觉是什么？",
        "日本周刊是谁的？",
        "这周围有什么？",
        "周一鸣住在哪里？",
        "她一月一次去哪里？一个月去几次？",
        "每星期二他做什么？",
        "2023年前他住哪里？3月前呢？",
        # a phrase of two meanings: yesterday and tomorrow
        "वह कल कहाँ थी?",
        # English is read elsewhere
        "What did Mai say to August about the 14. März, gestern and ontem?",
        "Do you go so often on a Mai?",
        "Jane dentist April",
        "",
        "？",
    ],
)
def test_words_that_only_look_like_dates(text: str) -> None:
    assert days(text) == []


@pytest.mark.parametrize(
    "text", ["上周一共花了多少？", "上周三次会议谈了什么？", "上周日本队赢了吗？", "上周四川怎么样？"]
)
def test_a_numeral_after_a_week_is_no_weekday(text: str) -> None:
    assert days(text) == [LAST_WEEK]


def test_relative_dates_refer_to_the_time_of_asking_alone() -> None:
    assert days("Was war gestern?", datetime(2019, 1, 1, tzinfo=UTC)) == [("2018-12-31", 1)]
    assert days("Was war gestern, was am 5. April?", None) == [("2025-04-05", 1)]
    assert days("Was war vor 9999 Jahren?") == []


def test_what_was_read_is_taken_out_of_the_text() -> None:
    assert local_spans("Was war am 14. März 2024 los?", ASKED, [2025])[1].split() == ["Was", "war", "am", "los?"]


def test_a_language_is_known_by_its_stop_words_and_english_wins_a_tie() -> None:
    assert languages_of("Was hat sie am Montag gesagt?") == ("de",)
    assert languages_of("她做了什么？") == ("zh",)
    assert languages_of("What is 上周 in English?") == ()
    assert languages_of("彼女は先週何をした？") == ()
    assert languages_of("Was was on in April") == ()
    assert "de" in languages_of("Was wurde gestern gestrichen?"), "every English word of it is German, too"
    assert languages_of("Did Kevin's New Year's Eve plans come true?") == ()


def test_chinese_numbers() -> None:
    found = {"14": 14, "十": 10, "十四": 14, "二十": 20, "三十一": 31, "两": 2, "二三": 0}
    assert {text: number(text) for text in found} == found


def test_an_english_question_loads_no_locale_data() -> None:
    code = (
        "import sys; from memstate_core.retrieve.question.local_dates import local_spans;"
        "print('stop_words' in sys.modules); local_spans('What was in May?', None, [2025]);"
        "print('dateparser' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("text", ["Was wurde gestern gestrichen?", "O que foi pintado ontem?", "昨天油漆了什么？"])
@pytest.mark.parametrize(("asked_on", "first"), [(4, 3), (21, 20)])
def test_evidence_of_the_named_time_comes_first(store: Store, opened, text: str, asked_on: int, first: int) -> None:
    store.topic("yard")
    for on in (3, 20):
        store.says("yard", "Das Tor.", on=on, actor="Ines", session_id=f"chat-{on}", turn=1)
    question = Question(text, ("user:a",), explain=True, asked_at=day(asked_on))
    best = answer(opened(store), store.encoder, None, question)["evidence"][0]
    assert best["observed_at"].startswith(f"{day(first):%Y-%m-%d}")
    assert best["explain"]["parts"]["date"] == 2.0
    silent = Question(text, ("user:a",), explain=True, asked_at=day(asked_on), stages=STAGES - {"temporal"})
    assert "date" not in answer(opened(store), store.encoder, None, silent)["evidence"][0]["explain"]["parts"]
