"""Forms of dates in Chinese, which is written without spaces: 3月14日, 三月, 上周, 上周日, 三天前, 昨天.

Without spaces a date may appear where two words meet: 晚上周杰伦 is no 上周, and 如今天气 no 今天. So characters that
make another word with the first or the last one are excluded. Weekdays need 上, 这, 本 or the long form (星期二), since
周 is a family name, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from memstate_core.retrieve.question.date_forms import (
    Asked,
    Form,
    Span,
    calendar_spans,
    day_span,
    relative,
    unit_span,
    weekday_span,
)

_DIGITS = "一二三四五六七八九"
_NUMERAL = rf"[{_DIGITS}十]"
_NUMBER = rf"\d{{1,2}}|{_NUMERAL}{{1,3}}"
_COUNT = rf"(?<![\d{_DIGITS}十百千])(?P<count>{_NUMBER}|[两兩])"
_AGO = "(?:之|以)?前"
_YEAR = r"(?P<year>(?:19|20)\d\d)年"
_MONTH = rf"(?<![\d{_DIGITS}十第每几這那上下近前后这])(?P<month>{_NUMBER})月"
_WEEK = r"[个個]?(?:周|週|星期|礼拜|禮拜)"
_WEEKDAY = (
    r"(?P<weekday>[一二三四五六日天])(?![共起直些样樣定般次个個人天位名只张張本川安家点點下边邊岁歲年月块塊元公小分])"
)
"""Not: 上周一共 (in all), 上周三次 (three times), 上周日本 (Japan), 上周四川 (Sichuan)."""

_BEFORE_WEEK = r"(?<![晚早以马馬身路网網楼樓街车車船桌地墙牆山手世班会會史桥橋岸海加])"
_AFTER_WEEK = r"(?![围圍边邊到年期密折旋全身岁歲转轉杰])"
_BEFORE_THIS = r"(?<![日根基样樣剧劇课課版])"
_BEFORE_DAY = r"(?<![如目以之从從当當])"
_AFTER_DAY = r"(?![气氣下然空色地])"
_YEAR_WORD = r"(?<![过過失如])(?P<word>前年|去年|今年)(?![轻輕代龄齡级級少纪紀])"
_DAYS = {"大前天": 3, "前天": 2, "前晚": 2, "昨天": 1, "昨日": 1, "昨晚": 1, "今天": 0, "今日": 0, "今晚": 0, "今早": 0}
_YEARS = {"前年": 2, "去年": 1, "今年": 0}
_UNITS = {"天": "day", "周": "week", "週": "week", "星期": "week", "礼拜": "week", "月": "month", "年": "year"}


def number(text: str) -> int:
    """The value of a number below 100 in digits or numerals: 14, 十四, 三十."""
    if text.isdigit():
        return int(text)
    if text in ("两", "兩"):
        return 2
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return _DIGITS.index(text) + 1 if len(text) == 1 else 0
    high = _DIGITS.index(tens) + 1 if len(tens) == 1 else int(not tens)
    return 10 * high + (_DIGITS.index(ones) + 1 if ones else 0)


def _calendar(found: re.Match[str], asked: Asked) -> Iterable[Span]:
    given = found.groupdict()
    year, day = given.get("year"), given.get("day")
    named = number(day) if day else None
    return calendar_spans(int(year) if year else None, number(given["month"]), named, asked.years)


def _weekday(found: re.Match[str], midnight: datetime) -> Span:
    """A weekday of this week or of an earlier one; where no week is named, the last one before today."""
    weekday = "一二三四五六日".index(found["weekday"].replace("天", "日"))
    if not found["which"]:
        return weekday_span(midnight, weekday, today=False)
    week = unit_span("week", midnight, _back(found))
    return day_span(week.start + timedelta(days=weekday), 0)


def _back(found: re.Match[str]) -> int:
    """How many weeks or months back: two for 上上, one for 上, none for 这 and 本."""
    return str(found["which"]).count("上")


def _counted(found: re.Match[str], midnight: datetime) -> Span:
    return unit_span(_UNITS[found["unit"]], midnight, number(found["count"]))


CHINESE_FORMS: list[Form] = [
    *(
        (re.compile(form), _calendar)
        for form in (
            rf"(?:{_YEAR})?{_MONTH}(?P<day>{_NUMBER})[日号號]",
            rf"{_YEAR}{_MONTH}",
            rf"{_MONTH}份?(?![一二两兩三四五六七八九十\d次回后後前内內之来來光亮])",
        )
    ),
    *(
        (re.compile(form), relative(span))
        for form, span in (
            (rf"{_COUNT}(?P<unit>天|周|週|年){_AGO}", _counted),
            (rf"{_COUNT}[个個](?P<unit>星期|礼拜|月){_AGO}", _counted),
            (rf"{_BEFORE_WEEK}(?P<which>上上|上|这|這){_WEEK}{_WEEKDAY}", _weekday),
            (rf"{_BEFORE_THIS}(?P<which>本)周{_WEEKDAY}", _weekday),
            (rf"(?<![每下])(?P<which>)(?:星期|礼拜|禮拜){_WEEKDAY}", _weekday),
            (
                rf"{_BEFORE_WEEK}(?P<which>上上|上|这|這){_WEEK}{_AFTER_WEEK}",
                lambda found, now: unit_span("week", now, _back(found)),
            ),
            (rf"{_BEFORE_THIS}本周{_AFTER_WEEK}", lambda _, now: unit_span("week", now, 0)),
            (r"(?P<which>上上|上|这|這)[个個]月", lambda found, now: unit_span("month", now, _back(found))),
            (rf"{_BEFORE_THIS}本月", lambda _, now: unit_span("month", now, 0)),
            (_YEAR_WORD, lambda found, now: unit_span("year", now, _YEARS[found["word"]])),
            (
                rf"{_BEFORE_DAY}(?P<word>{'|'.join(_DAYS)}){_AFTER_DAY}",
                lambda found, now: day_span(now, _DAYS[found["word"]]),
            ),
        )
    ),
]
"""In order of precedence; no part of a text is read twice."""
