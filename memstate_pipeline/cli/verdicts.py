"""Verdicts on pairs of topics, from options, from a file, or from prompts on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from memstate_core.model.verdicts import DIFFERENT, SAME, SKIP, VERDICTS
from memstate_pipeline.cli.shared.options import numbered_lines
from memstate_pipeline.cli.shared.output import show_lines
from memstate_pipeline.cli.shared.text import pair_lines

if TYPE_CHECKING:
    from memstate_core.run.served_state import Served

Verdict = tuple[str, str]
"""A pair of topics, written as A:B, and the verdict on it."""

_KEYS = {"s": SAME, "d": DIFFERENT, "k": SKIP}


def given_verdicts(decide: Sequence[str], file: Path | None) -> list[Verdict]:
    """The verdicts of `--decide` and `--file`.

    Raises:
        typer.BadParameter: an option is not A:B=VERDICT, or a line of the file is not such a document.
    """
    return [_option(text) for text in decide] + (
        [] if file is None else [_line(*each) for each in numbered_lines(file)]
    )


def ask_verdicts(pairs: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """Shows one pair after another on the terminal and asks for a verdict, until all have one or `q` is typed."""
    verdicts: list[Verdict] = []
    for place, pair in enumerate(pairs, start=1):
        show_lines([f"pair {place} of {len(pairs)}", *pair_lines(pair)])
        key = ""
        while key not in (*_KEYS, "q"):
            key = typer.prompt("s(ame), d(ifferent), k (skip), q(uit)", err=True).strip().lower()[:1]
        if key == "q":
            break
        verdicts.append((f"{pair['a']['id']}:{pair['b']['id']}", _KEYS[key]))
    return verdicts


def located(shards: Mapping[str, Served], verdicts: Sequence[Verdict]) -> dict[str, list[tuple[str, str, str]]]:
    """Verdicts by the shard that holds both topics, with ids resolved to surviving topics; a merged pair keeps its ids.

    Raises:
        TopicNotFound: an id is unknown.
        VerdictRefused: the two are in different shards, hence in different scopes, or one id is given twice.
    """
    found: dict[str, list[tuple[str, str, str]]] = {}
    for pair, verdict in verdicts:
        shard, a, b = _located(shards, pair)
        found.setdefault(shard, []).append((a, b, verdict))
    return found


def _located(shards: Mapping[str, Served], pair: str) -> tuple[str, str, str]:
    """The shard of a pair and its topics; ids may contain colons, so every colon is tried."""
    from memstate_core.model.errors import TopicNotFound, VerdictRefused

    parts = pair.split(":")
    cuts = [(":".join(parts[:place]), ":".join(parts[place:])) for place in range(1, len(parts))]
    homes = [[(shard, topic) for shard, s in shards.items() if (topic := s.living(end))] for cut in cuts for end in cut]
    for cut, left, right in zip(cuts, homes[::2], homes[1::2], strict=True):
        if left and right:
            (shard, a), (other, b) = left[0], right[0]
            if cut[0] == cut[1]:
                raise VerdictRefused(*cut, "it is one id given twice; name two topics, as `memstate review` lists them")
            if shard != other:
                raise VerdictRefused(a, b, "they belong to different scopes, and nothing is compared across scopes")
            return (shard, *cut) if a == b else (shard, a, b)
    unknown = cuts[0][0] if not homes[0] else cuts[0][1]
    raise TopicNotFound(unknown, ", ".join(served.snapshot.name for served in shards.values()))


def _option(text: str) -> Verdict:
    pair, _, verdict = text.rpartition("=")
    left, _, right = pair.partition(":")
    if verdict not in VERDICTS or not left or not right:
        raise typer.BadParameter(f"{text!r} is not a verdict: expected A:B=VERDICT with {', '.join(VERDICTS)}")
    return pair, verdict


def _line(line: str, where: str) -> Verdict:
    try:
        row = json.loads(line)
        return _option(f"{row['a']}:{row['b']}={row['verdict']}")
    except (ValueError, KeyError, TypeError) as error:
        expected = '{"a": ID, "b": ID, "verdict": "same"}'
        raise typer.BadParameter(f"{where}: found {line!r}, expected {expected}, or different or skip") from error
