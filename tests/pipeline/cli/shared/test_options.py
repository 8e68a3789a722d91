"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

from memstate_pipeline.cli.shared.options import numbered_lines


def test_lines_come_without_the_byte_order_mark_of_their_file(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    file.write_text('{"a": 1}\n\n two \n', encoding="utf-8-sig")
    assert numbered_lines(file) == [('{"a": 1}', f"{file}, line 1"), ("two", f"{file}, line 3")]
