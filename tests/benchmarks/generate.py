"""Writes made-up dumps of any size, for benchmarks.

Two kinds: structured observations, where topics of Zipf-like popularity have fields that change over time
and edges to others of their scope, and (with `--turns`) chats that move from subject to subject. Nothing
here measures anything. The one invariant: the same arguments give the same bytes.

A value is a hash of what it belongs to and of the weeks it holds for. So two observations of a field agree
as long as no change lies between them, whichever is read first, and late data repeats old values.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import zstandard

END = datetime(2026, 2, 1, tzinfo=UTC)
WINDOW_SECONDS = 180 * 86_400
CHUNK_ROWS = 200_000
LATE_SHARE = 0.03
EDGE_SHARE = 0.25
TWIN_ONE_IN = 50
"""Every so many topics of the rarer half is a second writing of its neighbour, for merging to find."""
FIELD_DAYS, SUMMARY_DAYS = 45, 90
"""For how long a value holds."""
CHILDREN = 8
"""Extension edges form a tree in which a topic has up to so many children."""

Numbers = npt.NDArray[np.uint64]


def _words(text: str, separator: str = " ") -> tuple[str, ...]:
    return tuple(text.split(separator))


KINDS = ("project", "person", "device", "place", "decision", "incident", "preference", "supplier")
FIELDS_PER_KIND = 6
ADJECTIVES = _words(
    "amber autumn blue borrowed brass bright broken calm chalk coastal copper crooked dawn distant "
    "double dry early eastern evening fallow first floating folded foreign frozen gentle glass golden "
    "granite green hidden hollow inner iron late little lower lunar marble mended mild modern narrow "
    "northern old open outer painted paper patient plain portable quiet rapid red remote round rural "
    "salted second shared silent silver slow southern spare steady stone summer tall tidal upper urban "
    "warm western white winter wooden yellow"
)
NOUNS = _words(
    "archive atlas bakery ballot bridge budget cable calendar camera canal catalogue choir cinema "
    "clinic compass contract courier crane cellar dashboard database dictionary engine exhibition "
    "experiment ferry festival firewall forecast garden gateway generator glossary greenhouse harbour "
    "heater inspection interview invoice kitchen laboratory ladder lantern lease ledger lecture library "
    "lighthouse loom magazine market mast mill mortgage museum network notebook nursery orchard oven "
    "panel parcel passport pavilion pension pipeline playground printer prototype pump quarry recipe "
    "refund renewal reservoir roof satellite scanner schedule school sensor server shuttle signal "
    "stable studio subscription survey telescope theatre thesis tower tractor translation turbine "
    "vaccine valve warehouse workshop"
)
PLACES = _words(
    "Alder Quay,Ash Hollow,Beacon Row,Birch Lane,Bramble End,Candle Court,Castle Steps,Chapel Green,"
    "Cinder Hill,Copper Yard,Dove Street,Elm Crossing,Fallow Field,Fern Gate,Fisher Wharf,"
    "Foxglove Bank,Glass Alley,Harrow Road,Heron Point,Holly Rise,Juniper Square,Kestrel Ridge,"
    "Larch Corner,Lime Terrace,Mallow Park,Maple Cut,Meadow Lock,Mill Pond,Nettle Walk,Orchard Side,"
    "Otter Bridge,Pear Tree Close,Quarry Bend,Raven Tower,Reed Island,Rowan Avenue,Saddler Mews,"
    "Thistle Common,Weaver Bay,Willow Ford",
    separator=",",
)
PEOPLE = _words(
    "Ada,Bruno,Chidi,Dana,Emre,Farah,Goran,Hana,Idris,Jun,Kaia,Luca,Mina,Nils,Oona,Pavel,Rosa,Sami,"
    "Tove,Uma,Viktor,Wanda",
    separator=",",
)
STATUSES = ("proposed", "planned", "running", "waiting", "paused", "done", "dropped")
TAGS = ("urgent", "legal", "outdoor", "shared", "costly", "seasonal", "pilot", "remote", "fragile", "weekly")
REASONS = (
    "a new count",
    "handed over",
    "the weather",
    "a better offer",
    "a mistake was found",
    "asked by the board",
)
PROVENANCES = ("api", "ui", "llm", "mcp", "import")
OBSERVATION_KINDS = (
    "explicit_memory",
    "explicit_memory",
    "explicit_memory",
    "tool_result",
    "file_edit",
    "system_event",
)
EXTENSIONS_UP = ("part_of", "extends", "derives")
EXTENSIONS_DOWN = ("has_detail", "has_subtopic")
ASSOCIATIONS = ("mentions", "references", "associated_with", "collaborates_with", "supports")

SUMMARIES = (
    "The <adjective> <noun> at <place> that <person> looks after, next to the <other>.",
    "A <noun> for <place>, <adjective> by design and paid for by the <other>.",
    "What <person> found out about the <adjective> <noun> while working on the <other> in <place>.",
    "Everything around the <noun> in <place>, from the <adjective> parts to the <other>.",
    "How the <adjective> <noun> came to <place> and why <person> keeps it apart from the <other>.",
    "<person> uses the <noun> at <place> whenever the <adjective> <other> cannot be reached.",
)
DEVELOPMENTS = (
    "Lately the work has slowed down.",
    "It is now open to everybody.",
    "A second team in <town> wants the same.",
    "<helper> has taken over most of it.",
    "The papers are with the office in <town>.",
    "It needs <number> more hours.",
)
SENTENCES = (
    "I went to <place> today to look at the <adjective> <noun>.",
    "The <noun> at <place> needs about <number> more hours before the <other> can follow.",
    "<person> thinks that the <other> matters more than the <noun>.",
    "Could you compare the <adjective> <noun> with the <other> that we saw in <place>?",
    "It cost <number> euros, and <person> says the <noun> is worth it.",
    "For the <noun> I would keep the <adjective> version and leave the <other> alone.",
    "Remember that <person> wants a word on the <noun> before Friday.",
    "There are <number> of them at <place>, all beside the <noun>.",
    "The <adjective> <noun> broke again, so the <other> has to wait.",
    "Then start with the <other> and come back to the <noun> when <person> has time.",
)
OBSERVATION = (
    '{"observation_id":"bench-<seed>/<row>","scope":{"type":"user","id":"bench-<scope>"},"kind":"<source_kind>",'
    '"observed_at":"<observed_at>","provenance":"<provenance>","source_uri":"bench/<provenance>",<named>,'
    '"topic_kind":"<kind>","title":"<title>","summary":"<summary>","fields":[<fields>],"edges":[<edges>]}\n'
)
TURN = (
    '{"observation_id":"bench-<seed>/chat-<session>#<turn>","scope":{"type":"user","id":"bench-<scope>"},'
    '"kind":"<speaker>_message","actor":"<speaker>","session_id":"bench-<seed>/chat-<session>","turn":<turn>,'
    '"observed_at":"<observed_at>","text":"<text>"}\n'
)


@dataclass(frozen=True)
class Spec:
    """What to make: how many rows, and of what they speak."""

    rows: int
    topics: int
    scopes: int
    seed: int


def observation_chunks(spec: Spec) -> Iterator[pl.Series]:
    """The lines of a structured dump, in order of arrival, a chunk at a time."""
    topics, visits = _topics(spec), _visits(spec)
    for part in visits.iter_slices(CHUNK_ROWS):
        told = _with_draws(part.join(topics, on="topic", how="left", maintain_order="left"), spec)
        told = told.join(_fields(told, spec), on="row", how="left", maintain_order="left")
        told = told.join(_edges(told, topics, spec), on="row", how="left", maintain_order="left")
        yield told.select(line=_observation_line(spec))["line"]


def turn_chunks(spec: Spec) -> Iterator[pl.Series]:
    """The lines of a chat dump, session by session, a chunk at a time."""
    for part in _turns(spec).iter_slices(CHUNK_ROWS):
        yield part.select(line=_turn_line(spec))["line"]


# --- building blocks


def _mix(*parts: Numbers | int) -> Numbers:
    """SplitMix64 over several numbers: the same on every machine, unlike the hashes of the libraries."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        state = state * np.uint64(31) + np.uint64(0x9E3779B97F4A7C15) + np.atleast_1d(np.asarray(part, np.uint64))
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def _numbers(frame: pl.DataFrame, name: str) -> Numbers:
    return frame[name].to_numpy().astype(np.uint64)


def _pick(words: Sequence[str], draw: pl.Expr, salt: int = 0) -> pl.Expr:
    """One of the words per row; draws with another salt are independent."""
    index = (draw // (7919**salt)) % len(words)
    word: pl.Expr = index.replace_strict(range(len(words)), words, return_dtype=pl.String)
    return word


def _choose(index: pl.Expr, options: Sequence[pl.Expr]) -> pl.Expr:
    """The option whose number is in `index`."""
    chosen = options[0]
    for number, option in enumerate(options[1:], start=1):
        chosen = pl.when(index == number).then(option).otherwise(chosen)
    return chosen


def _fill(template: str, words: dict[str, pl.Expr]) -> pl.Expr:
    """The template with every `<name>` replaced by that name's words."""
    parts = re.split(r"<(\w+)>", template)
    return pl.concat_str([words[part] if i % 2 else pl.lit(part) for i, part in enumerate(parts)])


def _any_of(templates: Sequence[str], draw: pl.Expr, words: dict[str, pl.Expr]) -> pl.Expr:
    return _choose(draw % len(templates), [_fill(template, words) for template in templates])


def _text(words: pl.Expr) -> pl.Expr:
    return pl.concat_str(pl.lit('"'), words, pl.lit('"'))


def _moment(seconds: pl.Expr) -> pl.Expr:
    """Seconds since the window opened as an ISO moment."""
    start = END - timedelta(seconds=WINDOW_SECONDS)
    return (pl.lit(start) + pl.duration(seconds=seconds)).dt.to_string("%Y-%m-%dT%H:%M:%SZ")


# --- structured observations


def _topics(spec: Spec) -> pl.DataFrame:
    """Topics by number, most popular first; number modulo scopes is the scope.

    A twin shares title, summary and values with the topic that it doubles, its `origin`, and goes by an id
    where that one goes by a key: two keys would say that two topics are meant.
    """
    topic = np.arange(spec.topics, dtype=np.uint64)
    chosen = (_mix(spec.seed, 1, topic) % TWIN_ONE_IN == 0) & (topic >= max(spec.topics // 2, spec.scopes))
    twin = chosen & ~np.roll(chosen, spec.scopes)
    origin = np.where(twin, topic - np.uint64(spec.scopes), topic)
    kind = (_mix(spec.seed, 2, origin) % len(KINDS)).astype(np.int64)
    frame = pl.DataFrame({"topic": topic, "origin": origin, "twin": twin, "kind_number": kind})
    titled = frame.hstack(_title_words(spec, origin)).with_columns(
        kind=_pick(KINDS, pl.col("kind_number")), scope=pl.col("topic") % spec.scopes
    )
    title = pl.concat_str(pl.col("adjective").str.to_titlecase(), "noun", pl.lit("at"), "place", separator=" ")
    return titled.with_columns(
        title=pl.when("twin").then(title.str.to_uppercase()).otherwise(title),
        name=pl.concat_str("kind", pl.lit("-"), "topic"),
    )


def _title_words(spec: Spec, origin: Numbers) -> pl.DataFrame:
    """Adjective, noun and place of every topic; a triple comes again only when all have been used."""
    vocabularies = {"adjective": ADJECTIVES, "noun": NOUNS, "place": PLACES}
    sizes = [len(words) for words in vocabularies.values()]
    total = np.uint64(np.prod(sizes))
    triples = np.random.default_rng(spec.seed).permutation(int(total))[origin % total]
    numbers = zip(vocabularies.items(), np.unravel_index(triples, sizes), strict=True)
    words = pl.DataFrame({name: np.asarray(words)[index] for (name, words), index in numbers})
    again = pl.Series(origin // total)
    numeral = pl.when(again > 0).then(pl.concat_str(pl.lit(" "), again + 1)).otherwise(pl.lit(""))
    return words.with_columns(place=pl.col("place") + numeral)


def _visits(spec: Spec) -> pl.DataFrame:
    """Which topic each row observes and when: all topics once, the rest by Zipf's law with exponent 1."""
    rng = np.random.default_rng([spec.seed, 3])
    weights = np.cumsum(1 / np.arange(1, spec.topics + 1))
    popular = np.searchsorted(weights, rng.random(spec.rows - spec.topics) * weights[-1])
    topic = rng.permutation(np.concatenate([np.arange(spec.topics), popular])).astype(np.uint64)
    arrived = np.sort(rng.random(spec.rows)) * WINDOW_SECONDS
    late = rng.random(spec.rows) < LATE_SHARE
    observed = np.where(late, arrived * rng.random(spec.rows), arrived).astype(np.int64)
    frame = pl.DataFrame({"row": np.arange(spec.rows, dtype=np.uint64), "topic": topic, "observed": observed})
    return frame.with_columns(draw=pl.Series(_mix(spec.seed, 4, _numbers(frame, "row"))))


def _period(frame: pl.DataFrame, days: int, *owner: Numbers | int) -> Numbers:
    """Which of its periods of so many days an observation falls in; owners change on days of their own."""
    day, offset = _numbers(frame, "observed") // np.uint64(86_400), _mix(*owner) % np.uint64(days)
    return (day + offset) // np.uint64(days)


def _fields(told: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """One to three fields per row, as JSON (columns row, fields)."""
    count = (pl.col("draw") % 3 + 1).cast(pl.Int64)
    long = told.select("row", "origin", "kind_number", "observed", "draw", nth=pl.int_ranges(count))
    long = long.explode("nth")
    slot = (pl.col("draw") // 3 + pl.col("nth").cast(pl.UInt64)) % FIELDS_PER_KIND
    long = long.with_columns(field=(pl.col("kind_number").cast(pl.UInt64) * 2 + slot) % len(_renderers()))
    owner = (spec.seed, 5, _numbers(long, "origin"), _numbers(long, "field"))
    value = pl.Series(_mix(*owner, _period(long, FIELD_DAYS, *owner)) >> np.uint64(8))
    long = long.with_columns(value=value).select("row", json=_field_json())
    return long.group_by("row", maintain_order=True).agg(fields=pl.col("json").str.join(","))


def _renderers() -> list[tuple[str, str, pl.Expr]]:
    """Name, type and JSON value of every field; a name has one type wherever it is used."""
    value = pl.col("value")
    two_tags = {"first": _pick(TAGS, value), "second": _pick(TAGS, value, 1)}
    some_day = pl.lit(date(2026, 1, 1)) + pl.duration(days=value % 365)
    limits = {"low": value % 50, "high": value % 50 + 1 + (value // 50) % 50}
    return [
        ("status", "string", _text(_pick(STATUSES, value))),
        ("budget_eur", "int", (value % 90_000).cast(pl.String)),
        ("due", "date", _text(some_day.dt.to_string("%Y-%m-%d"))),
        ("owner", "string", _text(_pick(PEOPLE, value))),
        ("effort_days", "float", pl.concat_str(value % 400, pl.lit("."), (value // 400) % 10)),
        ("on_hold", "bool", _pick(("true", "false"), value)),
        ("tags", "list", _fill('["<first>","<second>"]', two_tags)),
        ("reviewed_at", "datetime", _text(some_day.dt.to_string("%Y-%m-%dT09:00:00Z"))),
        ("limits", "json", _fill('{"low":<low>,"high":<high>}', limits)),
        ("site", "string", _text(_pick(PLACES, value))),
        ("headcount", "int", (value % 300).cast(pl.String)),
        ("score", "float", pl.concat_str(pl.lit("0."), value % 100 + 100)),
    ]


def _field_json() -> pl.Expr:
    draw = pl.col("value") // 1009
    reason = _fill(',"why_changed":"<reason>"', {"reason": _pick(REASONS, draw, 1)})
    confidence = _fill(',"confidence":0.<digit>', {"digit": draw % 9 + 1})
    rest = pl.concat_str(
        pl.when(draw % 4 == 0).then(reason).otherwise(pl.lit("")),
        pl.when(draw % 5 == 0).then(confidence).otherwise(pl.lit("")),
    )
    template = '{"name":"<name>","value":<value>,"field_type":"<type>"<rest>}'
    options = [
        _fill(template, {"name": pl.lit(name), "value": value, "type": pl.lit(kind), "rest": rest})
        for name, kind, value in _renderers()
    ]
    return _choose(pl.col("field"), options)


def _edges(told: pl.DataFrame, topics: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """At most one edge per row, as JSON (columns row, edges): along the scope's tree, or by popularity."""
    draw = _mix(spec.seed, 6, _numbers(told, "row"))
    place, scope = np.divmod(_numbers(told, "topic").astype(np.int64), spec.scopes)
    last = (spec.topics - 1 - scope) // spec.scopes
    parent, child = (place - 1) // CHILDREN, place * CHILDREN + 1 + (draw % CHILDREN).astype(np.int64)
    popular = np.expm1((draw >> np.uint64(11)) / 2.0**53 * np.log1p(last + 1)).astype(np.int64)
    way = (draw >> np.uint64(40)) % np.uint64(4)
    target = np.select([way == 0, way == 1], [parent, child], popular)
    exists = (target >= 0) & (target <= last) & (target != place)
    found = told.select("row", drawn=pl.Series(draw >> np.uint64(20)), way=pl.Series(way))
    found = found.with_columns(topic=pl.Series(target * spec.scopes + scope))
    found = found.filter(pl.Series(exists & (draw % np.uint64(1000) < EDGE_SHARE * 1000)))
    named = found.with_columns(pl.col("topic").cast(pl.UInt64)).join(topics, on="topic", maintain_order="left")
    return named.select(
        "row", edges=_fill('{"kind":"<kind>",<named>}', {"kind": _edge_kind(), "named": _naming("to_")})
    )


def _edge_kind() -> pl.Expr:
    up, down, across = (_pick(kinds, pl.col("drawn")) for kinds in (EXTENSIONS_UP, EXTENSIONS_DOWN, ASSOCIATIONS))
    return _choose(pl.col("way"), [up, down, across, across])


def _naming(prefix: str = "") -> pl.Expr:
    """How a topic is referred to: a twin by its id, every other one by its key."""
    word = pl.when("twin").then(pl.lit("topic_id")).otherwise(pl.lit("topic_key"))
    return _fill(f'"{prefix}<word>":"bench-<name>"', {"word": word, "name": pl.col("name")})


def _observation_line(spec: Spec) -> pl.Expr:
    draw = pl.col("draw")
    words = {name: pl.col(name) for name in ("row", "scope", "kind", "title")}
    words |= {name: pl.col(name).fill_null("") for name in ("fields", "edges")}
    words["seed"] = pl.lit(str(spec.seed))
    words["named"], words["observed_at"] = _naming(), _moment(pl.col("observed"))
    words["source_kind"], words["provenance"] = _pick(OBSERVATION_KINDS, draw, 1), _pick(PROVENANCES, draw, 2)
    words["summary"] = _summary()
    return _fill(OBSERVATION, words)


def _with_draws(told: pl.DataFrame, spec: Spec) -> pl.DataFrame:
    """Adds what decides a row's summary: `stays` with the topic, `changes` from season to season."""
    owner = (spec.seed, 7, _numbers(told, "origin"))
    season = _period(told, SUMMARY_DAYS, *owner)
    return told.with_columns(
        stays=pl.Series(_mix(*owner) >> np.uint64(8)), changes=pl.Series(_mix(*owner, season) >> np.uint64(8))
    )


def _summary() -> pl.Expr:
    """What a topic is, then how it stands."""
    stays, changes = pl.col("stays"), pl.col("changes")
    words = {name: pl.col(name) for name in ("adjective", "noun", "place")}
    words |= {"other": _pick(NOUNS, stays, 1), "person": _pick(PEOPLE, stays, 2)}
    news = {
        "town": _pick(PLACES, changes, 1),
        "helper": _pick(PEOPLE, changes, 2),
        "number": changes % 90 + 10,
    }
    return pl.concat_str(_any_of(SUMMARIES, stays, words), _any_of(DEVELOPMENTS, changes, news), separator=" ")


def _subject_words(draw: pl.Expr) -> dict[str, pl.Expr]:
    """The words that a subject keeps coming back to."""
    vocabularies = {"adjective": ADJECTIVES, "noun": NOUNS, "other": NOUNS, "place": PLACES, "person": PEOPLE}
    return {name: _pick(words, draw, salt) for salt, (name, words) in enumerate(vocabularies.items())}


# --- chats


def _turns(spec: Spec) -> pl.DataFrame:
    """Turns in sessions of 20 to 40, in which the subject changes every 6 to 12 turns."""
    rng = np.random.default_rng([spec.seed, 9])
    lengths = rng.integers(20, 41, size=spec.rows // 20 + 1)
    starts = np.sort(rng.random(len(lengths))) * (WINDOW_SECONDS - 40 * 300)
    session = np.repeat(np.arange(len(lengths)), lengths)[: spec.rows].astype(np.uint64)
    frame = pl.DataFrame({"session": session, "gap": rng.integers(5, 300, size=spec.rows)})
    frame = frame.with_row_index("row").with_columns(turn=pl.int_range(1, pl.len() + 1).over("session"))
    pace = _mix(spec.seed, 10, session) % np.uint64(7) + np.uint64(6)
    subject = _mix(spec.seed, 11, session, _numbers(frame, "turn") // pace)
    start = pl.Series(starts[session.astype(np.int64)].astype(np.int64))
    return frame.with_columns(
        subject=pl.Series(subject),
        draw=pl.Series(_mix(spec.seed, 12, _numbers(frame, "row")) >> np.uint64(8)),
        observed=start + pl.col("gap").cum_sum().over("session"),
    )


def _turn_line(spec: Spec) -> pl.Expr:
    draw = pl.col("draw")
    words = {**_subject_words(pl.col("subject")), "number": draw // 1000 % 480 + 12}
    first, second = draw % len(SENTENCES), draw + 1 + draw // 100 % (len(SENTENCES) - 1)
    first, second = _any_of(SENTENCES, first, words), _any_of(SENTENCES, second, words)
    text = pl.when(draw % 3 == 0).then(first).otherwise(pl.concat_str(first, second, separator=" "))
    speaker = pl.when(pl.col("turn") % 2 == 1).then(pl.lit("user")).otherwise(pl.lit("assistant"))
    line = {name: pl.col(name) for name in ("session", "turn")}
    line |= {"seed": pl.lit(str(spec.seed)), "scope": pl.col("session") % spec.scopes, "speaker": speaker}
    return _fill(TURN, {**line, "observed_at": _moment(pl.col("observed")), "text": text})


# --- command line


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file to write to, compressed as its name says; no time stamp goes in, so equal runs stay equal."""
    with path.open("wb") as plain:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=plain, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        elif path.suffix == ".zst":
            with zstandard.ZstdCompressor().stream_writer(plain) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield plain


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Write a made-up dump for benchmarks; the same arguments give the same bytes."
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="file to write: .jsonl, .jsonl.gz or .jsonl.zst")
    parser.add_argument("--observations", type=int, default=100_000, help="structured observations")
    parser.add_argument(
        "--topics", type=int, default=20_000, help="topics that they are about, at most one per observation"
    )
    parser.add_argument("--scopes", type=int, default=4, help="scopes that the topics, or sessions, are spread over")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--turns", type=int, help="write so many turns of chats instead of observations")
    found = parser.parse_args(given)
    counts = (found.topics, found.observations) if found.turns is None else (1, found.turns)
    if not all(low <= high for low, high in pairwise((1, *counts))) or found.scopes < 1 or found.seed < 0:
        parser.error("expected 1 <= topics <= observations, at least 1 turn and 1 scope, and a seed of 0 or more")
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Writes the dump that the arguments ask for."""
    args = _arguments(given)
    spec = Spec(args.turns or args.observations, args.topics, args.scopes, args.seed)
    chunks = turn_chunks(spec) if args.turns else observation_chunks(spec)
    with _opened(args.out) as file:
        for lines in chunks:
            file.write("".join(lines.to_list()).encode())
    print(f"{spec.rows} rows written to {args.out}")


if __name__ == "__main__":
    main()
