"""Chats of WhatsApp: styles of dates, messages of many lines, and which number is the day."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstate_core.ingest.formats.shared.date_order import DAY_FIRST, MONTH_FIRST, DateOrder
from tests.core.ingest.formats.samples import zipped_by_name


def read(desk: Any, *lines: str, name: str = "WhatsApp Chat with Ann.txt") -> Any:
    path = desk.folder / name
    path.write_text("\n".join(lines) + "\n")
    return desk.read(path)


def test_turns_are_in_order_also_where_an_earlier_export_began_later_in_the_day(desk):
    """Its turns had the numbers of those before them, so that a longer export shuffled the session."""
    said = [
        ("08:59", "Z"),
        ("09:00", "Y"),
        ("09:00", "A"),
        ("09:00", "<Media omitted>"),
        ("09:01", "X"),
        ("10:00", "B"),
    ]
    lines = [f"31/12/20, {time} - Ann: {text}" for time, text in said]
    for written in (lines[4:], lines):
        read(desk, *written)
    rows = sorted(desk.evidence(), key=lambda row: (row["session_id"], row["turn"]))
    assert [row["text"] for row in rows] == ["Z", "Y", "A", "X", "B"]


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("31/12/20, 23:59 - Ann: Hi", "2020-12-31 23:59:00"),
        ("12/31/20, 11:59 PM - Ann: Hi", "2020-12-31 23:59:00"),
        ("12/31/20, 11:59\u202fpm - Ann: Hi", "2020-12-31 23:59:00"),
        ("12/31/2020, 12:05 a. m. - Ann: Hi", "2020-12-31 00:05:00"),
        ("12/31/2020, 12:05 p.\xa0m. - Ann: Hi", "2020-12-31 12:05:00"),
        ("[31.12.20, 23:59:58] Ann: Hi", "2020-12-31 23:59:58"),
        ("\u200e[31.12.2020, 23:59:58] ~\u202fAnn: \u200eHi", "2020-12-31 23:59:58"),
        ("[2020-12-31, 11:59:58 PM] Ann: Hi", "2020-12-31 23:59:58"),
        ("2020/12/31, 23:59 - Ann: Hi", "2020-12-31 23:59:00"),
        ("2020/12/31 下午11:59 - Ann: Hi", "2020-12-31 23:59:00"),
        ("[31.12.2020 klo 23.59.58] Ann: Hi", "2020-12-31 23:59:58"),
        ("31.12.20, 23:59 \u2013 Ann: Hi", "2020-12-31 23:59:00"),
    ],
)
def test_styles_of_dates(desk, line, time):
    report = read(desk, line)
    [row] = desk.evidence()
    assert (row["actor"], row["text"], f"{row['observed_at']:%Y-%m-%d %H:%M:%S}") == ("Ann", "Hi", time)
    assert report.files[0].notes == ()


def test_messages_of_many_lines_and_lines_of_the_system(desk):
    report = read(
        desk,
        "31/12/20, 23:57 - Messages and calls are end-to-end encrypted.",
        "31/12/20, 23:58 - Ann: one",
        "",
        "two: three",
        '31/12/20, 23:58 - Ben changed the subject to "Roses: red"',
        "31/12/20, 23:58 - Ben Ray: at 10:30: yes",
        "31/12/20, 23:59 - Ann: <Media omitted>",
        "31/12/20, 23:59 - Ann: This message was deleted",
        "01/01/21, 00:01 - Ann: new",
    )
    rows = sorted(desk.evidence(), key=lambda row: (row["session_id"], row["turn"]))
    assert [(row["kind"], row["actor"], row["text"]) for row in rows] == [
        ("system_event", None, "Messages and calls are end-to-end encrypted."),
        ("user_message", "Ann", "one\n\ntwo: three"),
        ("system_event", None, 'Ben changed the subject to "Roses: red"'),
        ("user_message", "Ben Ray", "at 10:30: yes"),
        ("user_message", "Ann", "new"),
    ]
    assert [row["session_id"] for row in rows[3:]] == ["whatsapp/Ann/2020-12-31", "whatsapp/Ann/2021-01-01"]
    assert report.files[0].notes == ("left out: 2 message without text",)


@pytest.mark.parametrize(
    ("dates", "first", "words"),
    [
        (["01/02/21", "25/02/21"], "2021-02-01", None),
        (["01/02/21", "02/25/21"], "2021-01-02", None),
        (
            ["01/11/21", "02/01/21", "02/02/21"],
            "2021-01-11",
            "month first, since the messages go back in time less often",
        ),
        (
            ["11/01/21", "01/02/21", "02/02/21"],
            "2021-01-11",
            "day first, since the messages go back in time less often",
        ),
        (["01/02/21"], "2021-02-01", "day first, since nothing in the file decides"),
        (["01/02/21", "25/02/21", "26/02/21", "02/25/21"], "2021-02-01", "day first, as most values above 12 say"),
    ],
)
def test_which_number_is_the_day(desk, dates, first, words):
    report = read(desk, *(f"{date}, 10:0{at} - Ann: text {at}" for at, date in enumerate(dates)))
    found = {row["text"]: row["observed_at"] for row in desk.evidence()}
    assert f"{found['text 0']:%Y-%m-%d}" == first
    notes = report.files[0].notes
    assert notes == () if words is None else words in notes[0]
    assert dict(report.reasons) == ({"bad_time": 1} if words and "above 12" in words else {})


@given(
    st.lists(
        st.dates(min_value=date(2015, 1, 1), max_value=date(2024, 1, 1)),
        min_size=1,
    ),
    st.booleans(),
)
def test_a_chat_in_order_is_never_read_in_the_wrong_order(days, american):
    order = DateOrder()
    for day in sorted(days):
        order.see((day.month, day.day, day.year) if american else (day.day, day.month, day.year))
    found, remark = order.decided()
    right = MONTH_FIRST if american else DAY_FIRST
    assert found == right or remark is not None


def test_the_same_chat_under_another_name_or_grown_adds_only_what_is_new(desk):
    lines = ["13/01/21, 10:00 - Ann: ok", "13/01/21, 10:00 - Ann: ok", "13/01/21, 10:01 - Ben: ok"]
    assert read(desk, *lines).accepted == 3
    report = read(desk, *lines, "13/01/21, 10:01 - Ben: more", name="WhatsApp Chat with Ann (1).txt")
    assert (report.accepted, report.duplicate) == (1, 3)
    path = desk.folder / "WhatsApp Chat - Ann.zip"
    path.write_bytes(zipped_by_name({"_chat.txt": "\n".join(lines), "photo.jpg": b"\xff\xd8"}))
    assert desk.read(path).duplicate == 3
    assert {row["session_id"] for row in desk.evidence()} == {"whatsapp/Ann/2021-01-13"}


def test_a_chat_whose_order_is_decided_only_later_repeats_nothing(desk):
    lines = ["01/02/21, 10:00 - Ann: one", "01/03/21, 10:00 - Ann: two"]
    read(desk, *lines)
    report = read(desk, *lines, "01/25/21, 10:00 - Ann: three")
    assert (report.accepted, report.duplicate, report.quarantined) == (1, 2, 0)


def test_lines_that_are_no_text_or_belong_nowhere_are_refused(desk):
    path = desk.folder / "a.txt"
    path.write_bytes(b"hello\n13/01/21, 10:00 - Ann: caf\xc3\xa9\ncaf\xe9\nmore\n33/13/21, 10:00 - Ann: when\n")
    report = desk.read(path)
    assert [row["text"] for row in desk.evidence()] == ["café\nmore"]
    assert [(row["line"], row["reason"]) for row in desk.quarantine()] == [
        (1, "wrong_type"),
        (3, "not_utf8"),
        (5, "bad_time"),
    ]
    assert report.read == 4


def test_a_message_without_end_is_cut_with_a_refusal(desk):
    report = read(desk, "13/01/21, 10:00 - Ann: long", *["x" * 1000] * 1100, "13/01/21, 10:01 - Ann: next")
    assert report.accepted == 2
    assert set(report.reasons) == {"line_too_long"}


def test_what_follows_a_message_that_cannot_be_read_is_not_given_to_another(desk):
    path = desk.folder / "a.txt"
    path.write_bytes(
        b"13/01/21, 10:00 - Ann: one\n13/01/21, 10:01 - Ben: caf\xe9\nof Ben\n13/01/21, 10:02 - Ann: "
        + b"x" * (2 << 20)
        + b"\nof Ann\n13/01/21, 10:03 - Ann: two\n"
    )
    report = desk.read(path)
    assert sorted(row["text"] for row in desk.evidence()) == ["one", "two"]
    assert dict(report.reasons) == {"line_too_long": 1, "not_utf8": 1, "wrong_type": 2}


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("2024/2/1 上午9:05 - Ann: Hi", "2024-02-01 09:05:00"),
        ("2024/2/1 晚上9:05 - Ann: Hi", "2024-02-01 21:05:00"),
        ("[2024. 2. 1. 오후 2:04:11] Ann: Hi", "2024-02-01 14:04:11"),
        ("2024년 1월 5일 오후 2:03 - Ann: Hi", "2024-01-05 14:03:00"),
        ("2024年1月5日 下午2:03 - Ann: Hi", "2024-01-05 14:03:00"),
        ("[\u0661\u200f/\u0662\u200f/\u0662\u0660\u0662\u0664، \u0669:\u0660\u0665:\u0661\u0661 م] Ann: Hi",
         "2024-02-01 21:05:11"),
        ("\u06f2\u06f0\u06f2\u06f4/\u06f2/\u06f1،\u200f \u06f9:\u06f0\u06f5 - Ann: Hi", "2024-02-01 09:05:00"),
        ("1/2/2024, 9:05 μ.μ. - Ann: Hi", "2024-02-01 21:05:00"),
    ],
)  # fmt: skip
def test_styles_of_dates_of_other_languages(desk, line, time):
    read(desk, line, "more")
    [row] = desk.evidence()
    assert (row["actor"], row["text"], f"{row['observed_at']:%Y-%m-%d %H:%M:%S}") == ("Ann", "Hi\nmore", time)


def test_every_message_of_a_chat_with_the_year_first_is_one(desk):
    lines = [
        "2024/1/31 上午9:05 - 小明: 周五见",
        "2024/2/1 上午9:05 - 小明: 改到周一",
        "2024/2/10 下午1:00 - 小红: 好的",
    ]
    assert read(desk, *lines).accepted == 3
    assert sorted(row["text"] for row in desk.evidence()) == sorted(["周五见", "改到周一", "好的"])


STRANGE = [
    "24. 2. 1. 오후 2:04 - 영희: 안녕",
    "1 févr. 2024 à 21:05 - Ann: oui",
    "[1 de febrero de 2024, 21:05:11] Ann: sí",
    "Feb 1, 2024, 9:05 PM - Ann: yes",
    "2024. 2. 1. PTG 9:05 - Ann: ya",
    "2024년 1월 5일 오후 2:03, 영희 : 안녕",
    "24. 2. 1. 오후 2:04 - 영희님이 나갔습니다",
]


@pytest.mark.parametrize("strange", STRANGE)
def test_a_beginning_in_another_style_is_part_of_no_message(desk, strange):
    report = read(desk, "13/01/21, 10:00 - Ann: one", strange, "its second line", "13/01/21, 10:02 - Ann: two")
    assert sorted(row["text"] for row in desk.evidence()) == ["one", "two"]
    assert dict(report.reasons) == {"bad_time": 1, "wrong_type": 1}
    assert "in a style that is not known" in desk.quarantine()[0]["detail"]


@pytest.mark.parametrize("strange", STRANGE)
def test_a_chat_in_another_style_is_refused_with_advice(desk, strange):
    report = read(desk, strange, "more")
    [error] = report.errors
    assert "it looks like a chat, but its dates are in a style that is not known" in str(error)
    assert "--format" in str(error)
    assert (report.accepted, report.quarantined) == (0, 0)


@pytest.mark.parametrize(
    "text",
    ["We met at 10:30, 15:45 and 17:50 - Ann: fine", "Call 030 123 45 67: now", "see https://a.b/2024-01-02: there",
     "1/2 cup at 10:30 - Ben: no", "[21:05, 1/2/2024] Ben: copied", "Monday 10:30 - Ann: maybe",
     "3 Feb 2024 10:30 - the dentist"],
)  # fmt: skip
def test_text_with_numbers_is_no_beginning(desk, text):
    report = read(desk, "13/01/21, 10:00 - Ann: one", text)
    assert [row["text"] for row in desk.evidence()] == [f"one\n{text}"]
    assert report.quarantined == 0


def test_a_date_that_is_none_is_reported_as_it_was_written(desk):
    read(desk, "13/01/21, 10:00 - Ann: one", "33/13/21, 10:00\u202fPM - Ann: two", "1402/11/12, 9:05 - Ann: three")
    details = [row["detail"] for row in desk.quarantine()]
    assert ["'33/13/21, 10:00\\u202fPM'" in details[0], "'1402/11/12, 9:05'" in details[1]] == [True, True]


@pytest.mark.parametrize(
    "text",
    ["<Medien ausgeschlossen>", "Bild weggelassen", "Diese Nachricht wurde gelöscht.", "<Multimedia omitido>",
     "imagen omitida", "Se eliminó este mensaje.", "Eliminaste este mensaje", "<Mídia oculta>", "imagem ocultada",
     "Mensagem apagada", "Você apagou esta mensagem", "<Médias omis>", "image absente", "Ce message a été supprimé",
     "<Media omessi>", "immagine omessa", "Questo messaggio è stato eliminato", "<Media weggelaten>",
     "afbeelding weggelaten", "Dit bericht is verwijderd", "<Без медиафайлов>", "изображение отсутствует",
     "Данное сообщение удалено", "<Medya dahil edilmedi>", "görüntü dahil edilmedi", "Bu mesaj silindi",
     "<省略多媒体文件>", "此消息已删除", "사진 생략됨", "삭제된 메시지입니다"],
)  # fmt: skip
def test_placeholders_of_main_languages_are_no_text(desk, text):
    report = read(desk, "13/01/21, 10:00 - Ann: one", f"13/01/21, 10:01 - Ann: \u200e{text}")
    assert [row["text"] for row in desk.evidence()] == ["one"]
    assert report.files[0].notes == ("left out: 1 message without text",)
