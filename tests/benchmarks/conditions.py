"""Compares the conditions of rules with CEL (Common Expression Language), the library that was rejected.

Random conditions are written in both languages and evaluated over the same rows; then come mistakes that people make
in rules, and the time that both take. CEL is `common-expression-language`, bindings to an implementation in Rust.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import cel
import polars as pl

from memstate_core.model.frames import Schema
from memstate_core.policy.conditions import ConditionError, parse_condition

COLUMNS: Schema = {
    "kind": pl.String, "title": pl.String, "salience": pl.Float64, "evidence": pl.Float64,
    "old": pl.Boolean, "used": pl.Boolean,
}  # fmt: skip
STRINGS, NUMBERS, BOOLEANS = ("kind", "title"), ("salience", "evidence"), ("old", "used")
WORDS = ("deal", "person", "note", "é", "\U0001f600", "")
SPEED_ROWS = 20_000
Row = dict[str, Any]


class Written(NamedTuple):
    """One condition in both languages."""

    ours: str
    cel: str


class Mistake(NamedTuple):
    """A condition with a mistake, in both languages, and the column at which our parser reports it (counted from 1)."""

    name: str
    ours: str
    cel: str
    column: int


MISTAKES = (
    Mistake("misspelt column", "sailence < 0.2", "sailence < 0.2", 1),
    Mistake("number beside a text", "kind == 3", "kind == 3.0", 9),
    Mistake("text beside a number", "salience < 'low'", "salience < 'low'", 12),
    Mistake("a number as a condition", "old and salience", "old && salience", 17),
    Mistake("order of booleans", "old < true", "old < true", 5),
    Mistake("order beside null", "salience < null", "salience < null", 10),
    Mistake("mixed types in a list", "salience in [1, 'x']", "salience in [1.0, 'x']", 17),
    Mistake("one equals sign", "kind = 'deal'", "kind = 'deal'", 6),
    Mistake("parenthesis not closed", "(old or used", "(old || used", 13),
    Mistake("string not closed", "kind == 'deal", "kind == 'deal", 9),
    Mistake("chained comparison", "0 < salience < 1", "0.0 < salience < 1.0", 14),
)


# --- random conditions and rows


def condition(random: Random, depth: int = 3) -> Written:
    """A random condition; parts nest up to a depth."""
    form = random.choice(("and", "or", "not", "plain")) if depth else "plain"
    if form == "plain":
        return random.choice((_comparison, _membership, _boolean))(random)
    parts = [condition(random, depth - 1) for _ in range(1 if form == "not" else random.randint(2, 3))]
    if form == "not":
        return Written(f"not ({parts[0].ours})", f"!({parts[0].cel})")
    sign = {"and": " && ", "or": " || "}[form]
    return Written(f" {form} ".join(f"({part.ours})" for part in parts), sign.join(f"({part.cel})" for part in parts))


def rows(random: Random, count: int, missing: float) -> list[Row]:
    """Random rows; each value is null with a probability."""
    draws: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(STRINGS, lambda: random.choice(WORDS)),
        **dict.fromkeys(NUMBERS, lambda: float(random.randint(-3, 3)) / 2),
        **dict.fromkeys(BOOLEANS, lambda: random.random() < 0.5),
    }
    return [{name: None if random.random() < missing else draw() for name, draw in draws.items()} for _ in range(count)]


def _comparison(random: Random) -> Written:
    if random.random() < 0.5:
        left, value, sign = random.choice(STRINGS), repr(random.choice(WORDS)), random.choice(("==", "!=", "<", ">="))
    else:
        left, value = random.choice(NUMBERS), f"{random.randint(-3, 3) / 2}"
        sign = random.choice(("==", "!=", "<", "<=", ">", ">="))
    text = f"{left} {sign} {value}"
    return Written(text, text)


def _membership(random: Random) -> Written:
    listed = ", ".join(repr(word) for word in random.sample(WORDS, 2))
    column, opposite = random.choice(STRINGS), random.random() < 0.5
    within = f"{column} in [{listed}]"
    return Written(f"{column} not in [{listed}]", f"!({within})") if opposite else Written(within, within)


def _boolean(random: Random) -> Written:
    column = random.choice(BOOLEANS)
    return Written(column, column)


# --- what is compared


def verdicts(count: int, missing: float, seed: int) -> Counter[str]:
    """How the verdicts of `count` conditions over 20 rows each compare: `same`, `other`, or `CEL error`."""
    random, found = Random(seed), Counter[str]()
    for _ in range(count):
        written, some = condition(random), rows(random, 20, missing)
        ours = _evaluated(written.ours, pl.DataFrame(some, schema=COLUMNS))
        found.update(map(_compared, ours, _by_cel(written.cel, some)))
    return found


def _evaluated(text: str, frame: pl.DataFrame) -> list[bool]:
    holds = frame.select("kind", found=parse_condition(text, COLUMNS))["found"]
    return [bool(value) for value in holds]


def _by_cel(text: str, some: Sequence[Row]) -> Iterator[Any]:
    program = cel.compile(text)
    for row in some:
        try:
            yield program.execute(row)
        except (TypeError, ValueError, RuntimeError) as error:
            yield error


def _compared(ours: bool, theirs: Any) -> str:
    if isinstance(theirs, Exception):
        return "CEL error"
    return "same" if theirs is ours else "other"


def noticed_by_cel(mistake: Mistake, some: Sequence[Row]) -> str:
    """When CEL notices a mistake: `compiling`, `evaluating` (over how many of the rows), or `never`."""
    try:
        cel.compile(mistake.cel)
    except ValueError:
        return "compiling, with a position"
    failed = sum(isinstance(found, Exception) for found in _by_cel(mistake.cel, some))
    return f"evaluating, without a position, on {failed} of {len(some)} rows" if failed else "never"


def noticed_by_us(mistake: Mistake) -> ConditionError | None:
    """The error that our parser raises."""
    try:
        parse_condition(mistake.ours, COLUMNS)
    except ConditionError as error:
        return error
    return None


def speed(seed: int) -> dict[str, tuple[float, float]]:
    """CPU seconds to read 100 conditions, and to evaluate each over 20,000 rows: ours and CEL's."""
    random = Random(seed)
    written, some = [condition(random) for _ in range(100)], rows(random, SPEED_ROWS, 0.0)
    frame = pl.DataFrame(some, schema=COLUMNS)
    read_ours, expressions = _timed(lambda: [parse_condition(one.ours, COLUMNS) for one in written])
    read_cel, programs = _timed(lambda: [cel.compile(one.cel) for one in written])
    ours, _ = _timed(lambda: [frame.select(found=one) for one in expressions])
    theirs, _ = _timed(lambda: [[program.execute(row) for row in some] for program in programs[:5]])
    return {"ours": (read_ours, ours), "CEL": (read_cel, theirs * len(programs) / 5)}


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


# --- tables


def main(given: Sequence[str] | None = None) -> None:
    """Prints the three comparisons as Markdown."""
    parser = argparse.ArgumentParser(description="Compare the conditions of rules with CEL.")
    parser.add_argument("--conditions", type=int, default=2000, metavar="N", help="random conditions, of 20 rows each")
    parser.add_argument("--seed", type=int, default=7, metavar="N")
    args = parser.parse_args(given)
    print("| rows | verdicts | same | other | CEL error |\n|---|---|---|---|---|")
    for name, missing in (("complete", 0.0), ("a fifth of the values missing", 0.2)):
        found = verdicts(args.conditions, missing, args.seed)
        print(f"| {name} | {found.total():,} | {found['same']:,} | {found['other']:,} | {found['CEL error']:,} |")
    print("\n| mistake | ours, when the policy is read | CEL notices it |\n|---|---|---|")
    some = rows(Random(args.seed), 20, 0.0)
    for mistake in MISTAKES:
        error = noticed_by_us(mistake)
        said = "no error" if error is None else f"column {error.column}: {error.problem.split(', expected one of')[0]}"
        print(f"| {mistake.name}, `{mistake.ours}` | {said} | {noticed_by_cel(mistake, some)} |")
    print(f"\n| language | reading a condition, ms | evaluating it over {SPEED_ROWS:,} rows, ms |\n|---|---|---|")
    for name, (reading, evaluating) in speed(args.seed).items():
        print(f"| {name} | {reading * 10:.2f} | {evaluating * 10:.1f} |")


if __name__ == "__main__":
    main()
