"""The rules of the fold again, in plain Python: dicts, lists and loops, no frames.

It is written from the rules (`docs/pages/explanation/fold.md`, `laws.md`; the docstring of placement), not from the
code, and is the oracle of the property tests. Only the ids are shared, since ids are hashes.

A merge is a pair (dropped, survivor). Times are anything that can be ordered.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memstate_core.model.forms.item import REFERENCE
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.ids import uuid_text

Observation = dict[str, Any]
Segment = dict[str, Any]
"""Turns that were placed together: topic_id, evidence_ids, the texts that they state, their session and period."""
Merge = tuple[str, str]
Group = tuple[str, str | None, str]
"""A scope, a kind and a title, the last two normalised."""


@dataclass
class World:
    """The state of a shard.

    Attributes:
        topics: by id: scope, title, summary, topic_kind, fields, evidence_ids.
        edges: (from, to, kind) to (valid_from, valid_until, evidence ids).
        dangling_edges: (from, kind) of edges that lead to no topic of their scope.
        tombstones: dropped topics with their last survivors.
        names: title and kind of each dropped topic, as its own evidence alone gives them.
        placed: the topic of each piece of evidence, None where it was refused.
        aliases: the ids that titles alone would have, with the topics that own the titles.
    """

    topics: dict[str, dict[str, Any]]
    edges: dict[tuple[str, str, str], tuple[Any, Any, list[str]]]
    dangling_edges: set[tuple[str, str]]
    tombstones: dict[str, str]
    names: dict[str, tuple[str, str | None]]
    placed: dict[str, str | None]
    aliases: dict[str, str]


def fold(
    observations: Iterable[Observation],
    merges: Sequence[Merge] = (),
    conflict_rule: str = "newest",
    segments: Sequence[Segment] = (),
) -> World:
    """The state that follows from a set of observations and merges.

    A segment with `stated` false places its turns and states nothing: it had not ended.
    """
    by_age = sorted(observations, key=_age)
    placed, aliases = place(by_age)
    in_segments = {evidence: segment["topic_id"] for segment in segments for evidence in segment["evidence_ids"]}
    turns = [o["evidence_id"] for o in by_age if o["evidence_id"] in in_segments]
    placed |= {evidence: in_segments[evidence] for evidence in turns}
    placed, references = _refer(by_age, placed)
    aliases |= references
    stated = [segment for segment in segments if segment["stated"]]
    alone = {
        dropped: _topic(
            dropped,
            [o for o in by_age if placed.get(o["evidence_id"]) == dropped],
            [segment for segment in stated if segment["topic_id"] == dropped],
            conflict_rule,
        )
        for dropped, _ in merges
    }
    names = {dropped: (own["title"], own["topic_kind"]) for dropped, own in alone.items()}
    survivors = {dropped: _last(dropped, dict(merges)) for dropped, _ in merges}

    def answering(name: str) -> str:
        owner = aliases.get(name, name)
        return survivors.get(owner, owner)

    placed = {evidence: None if topic is None else answering(topic) for evidence, topic in placed.items()}
    by_topic: dict[str, list[Observation]] = {}
    for observation in by_age:
        topic = placed.get(observation["evidence_id"])
        if topic is not None:
            by_topic.setdefault(topic, []).append(observation)
    scopes = {topic: said[0]["scope"] for topic, said in by_topic.items()}
    topics = {
        topic: _topic(topic, said, [each for each in stated if answering(each["topic_id"]) == topic], conflict_rule)
        for topic, said in by_topic.items()
    }
    for described in topics.values():
        for field in described["fields"].values():
            _follow(field, described["scope"], scopes, answering)
    edges, dangling = _edges(by_topic, scopes, answering)
    return World(topics, edges, dangling, survivors, names, placed, aliases)


def place(by_age: list[Observation]) -> tuple[dict[str, str | None], dict[str, str]]:
    """The topic of each piece of evidence that names one (None: refused), and the title aliases."""
    named = [o for o in by_age if o["topic_id"] or o["topic_key"] or o["title"]]
    home, written = _home_scopes(named), {_own_id(o) for o in named if _is_form(o)}
    accepted = [
        o
        for o in named
        if (not o["topic_id"] or home[o["topic_id"]] == o["scope"]) and (_is_form(o) or _own_id(o) not in written)
    ]
    aliases = _aliases(accepted)
    placed: dict[str, str | None] = {o["evidence_id"]: None for o in named}
    for observation in accepted:
        own = _own_id(observation)
        if own is None:
            own = _title_id(_group(observation))
        placed[observation["evidence_id"]] = aliases.get(own, own)
    return placed, aliases


def _refer(by_age: list[Observation], placed: dict[str, str | None]) -> tuple[dict[str, str | None], dict[str, str]]:
    """Placements in which references lead to the topics of observations (None: to none), and these topics."""
    known = {f"{REFERENCE}{o['scope']}:observation:{o['observation_id']}": placed.get(o["evidence_id"]) for o in by_age}

    def led(topic: str | None) -> str | None:
        seen: set[str] = set()
        while topic is not None and topic.startswith(REFERENCE):
            if topic in seen:
                return None
            seen.add(topic)
            topic = known.get(topic)
        return topic

    ends = {reference: led(topic) for reference, topic in known.items()}
    leading = {reference: topic for reference, topic in ends.items() if topic is not None}
    return {evidence: led(topic) for evidence, topic in placed.items()}, leading


def normalised(text: str | None) -> str | None:
    """Titles and kinds as they are compared."""
    return None if text is None else " ".join(unicodedata.normalize("NFKC", text).lower().split())


def _age(observation: Observation) -> tuple[Any, str]:
    return observation["observed_at"], observation["evidence_id"]


def _own_id(observation: Observation) -> str | None:
    """The id that an observation's topic has by the rules before the title."""
    if observation["topic_id"]:
        return str(observation["topic_id"])
    if observation["topic_key"]:
        return uuid_text("key", observation["scope"], observation["topic_key"])
    if observation["placement"] == "new_topic":
        return uuid_text("observation", observation["scope"], observation["observation_id"])
    return None


def _group(observation: Observation) -> Group:
    return observation["scope"], normalised(observation["topic_kind"]), normalised(observation["title"]) or ""


def _title_id(group: Group) -> str:
    scope, kind, title = group
    return uuid_text("title", scope, kind or "", title)


def _is_titled(observation: Observation) -> bool:
    """Whether its title leads to its topic; that of a form of `memory` does not."""
    return bool(observation["title"]) and not _is_form(observation)


def _is_form(observation: Observation) -> bool:
    """Whether it writes a topic that only a form of `memory` writes."""
    return observation["topic_kind"] in FORM_KINDS


def _home_scopes(named: list[Observation]) -> dict[str, str]:
    """Which scope an id belongs to: that of its title or key, else that which gave it first."""
    home: dict[str, str] = {}
    for observation in named:
        if _is_titled(observation):
            home[_title_id(_group(observation))] = observation["scope"]
    for observation in named:
        if not observation["topic_id"]:
            home.setdefault(_own_id(observation) or _title_id(_group(observation)), observation["scope"])
    for observation in named:
        if observation["topic_id"]:
            home.setdefault(observation["topic_id"], observation["scope"])
    return home


def _aliases(accepted: list[Observation]) -> dict[str, str]:
    bearers: dict[Group, list[Observation]] = {}
    for observation in accepted:
        if _is_titled(observation):
            bearers.setdefault(_group(observation), []).append(observation)
    title_ids = {_title_id(group) for group in bearers}
    owners: dict[Group, str] = {}
    for group, oldest_first in bearers.items():
        for observation in oldest_first:
            own = _own_id(observation)
            if own is not None and own not in title_ids:
                owners[group] = own
                break
    aliases = {}
    for group in bearers:
        scope, kind, title = group
        answers = group
        if kind is None and group not in owners:
            of_a_kind = [other for other in bearers if other[0] == scope and other[2] == title and other[1] is not None]
            if of_a_kind:
                answers = min(of_a_kind, key=lambda other: _age(bearers[other][0]))
        aliases[_title_id(group)] = owners.get(answers, _title_id(answers))
    return aliases


def _last(topic: str, merges: dict[str, str]) -> str:
    while topic in merges:
        topic = merges[topic]
    return topic


def _topic(topic_id: str, said: list[Observation], segments: list[Segment], conflict_rule: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for part in ("title", "summary", "topic_kind"):
        texts = [(o["observed_at"], len(o[part]), o["evidence_id"], o[part]) for o in said if o[part] is not None]
        described = [segment for segment in segments if segment[part] is not None]
        texts += [(s["began_at"], len(s[part]), s["evidence_ids"][0], s[part]) for s in described]
        parts[part] = max(texts)[-1] if texts else None
    keys = [o["topic_key"] for o in said if o["topic_key"]]
    parts["title"] = parts["title"] or (keys[0] if keys else topic_id)
    values = _of_observations(said, conflict_rule) + _of_segments(segments, conflict_rule)
    names = {value["field"]["name"] for value in values}
    return {
        "scope": said[0]["scope"],
        **parts,
        "fields": {name: _field([value for value in values if value["field"]["name"] == name]) for name in names},
        "evidence_ids": sorted(o["evidence_id"] for o in said),
    }


def _of_observations(said: list[Observation], conflict_rule: str) -> list[dict[str, Any]]:
    return [
        _assertion(observation, field["valid_from"] or observation["observed_at"], position, field, conflict_rule)
        for observation in said
        for position, field in enumerate(observation["fields"])
    ]


def _of_segments(segments: list[Segment], conflict_rule: str) -> list[dict[str, Any]]:
    """What segments state of their topic: their session, and everybody and the whole period up to then."""
    stated = []
    in_time = sorted(segments, key=lambda s: (s["began_at"], s["ended_at"], s["evidence_ids"][0]))
    for number, segment in enumerate(in_time):
        so_far = in_time[: number + 1]
        people = sorted({name for each in so_far for name in each["participants"]})
        began, ended = min(each["began_at"] for each in so_far), max(each["ended_at"] for each in so_far)
        values = {
            "participants": ("list", json.dumps(people, separators=(",", ":"))) if people else None,
            "session": ("string", json.dumps(segment["session_id"])) if segment["session_id"] else None,
            "period": ("string", json.dumps(f"{_iso(began)}/{_iso(ended)}")),
        }
        precedence = -1 if conflict_rule == "confidence" else 0
        order = (segment["began_at"], precedence, segment["ended_at"], segment["evidence_ids"][0], 0)
        stated += [
            {
                "order": order,
                "value": value[1],
                "evidence_ids": segment["evidence_ids"],
                "exclusive": False,
                "field": {"name": name, "field_type": value[0], "confidence": None, "ref_given": False},
            }
            for name, value in values.items()
            if value is not None
        ]
    return stated


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _field(assertions: list[dict[str, Any]]) -> dict[str, Any]:
    assertions = sorted(assertions, key=lambda assertion: assertion["order"])
    references = [assertion["field"]["ref_topic_id"] for assertion in assertions if assertion["field"]["ref_given"]]
    history = _history(assertions)
    return {
        "field_type": history[0][4],
        "ref_topic_id": references[-1] if references else None,
        "ref_state": None,
        "history": [revision[:4] for revision in history],
        "conflict": _conflict(assertions),
    }


def _assertion(o: Observation, since: Any, position: int, field: Any, conflict_rule: str) -> dict[str, Any]:
    confidence = -1 if field["confidence"] is None else field["confidence"]
    precedence = confidence if conflict_rule == "confidence" else 0
    return {
        "order": (since, precedence, o["observed_at"], o["evidence_id"], position),
        "value": field["value_json"],
        "evidence_ids": [o["evidence_id"]],
        "exclusive": field["field_type"] != "list" and not field["value_json"].startswith("["),
        "field": field,
    }


def _conflict(assertions: list[dict[str, Any]]) -> list[str]:
    """Other values said as of the newest time, as trustworthy as the current one; lists contradict nothing."""
    newest = max(assertions, key=lambda assertion: assertion["order"])
    equals = [assertion for assertion in assertions if assertion["order"][:2] == newest["order"][:2]]
    last = [assertion for assertion in assertions if assertion["order"][0] == newest["order"][0]]
    if not all(assertion["exclusive"] for assertion in last if assertion["value"] == newest["value"]):
        return []
    lists = {assertion["value"] for assertion in last if not assertion["exclusive"]}
    return sorted({assertion["value"] for assertion in equals} - {newest["value"]} - lists)


def _history(assertions: list[dict[str, Any]]) -> list[tuple[Any, Any, list[str], Any, str]]:
    """Newest first: value, since when, evidence, confidence, type."""
    runs: list[list[dict[str, Any]]] = []
    for assertion in sorted(assertions, key=lambda assertion: assertion["order"]):
        if runs and runs[-1][0]["value"] == assertion["value"]:
            runs[-1].append(assertion)
        else:
            runs.append([assertion])
    revisions = []
    for run in runs:
        confidences = [c["field"]["confidence"] for c in run if c["field"]["confidence"] is not None]
        revisions.append(
            (
                run[0]["value"],
                run[0]["order"][0],
                sorted({evidence for c in run for evidence in c["evidence_ids"]}),
                max(confidences, default=None),
                run[0]["field"]["field_type"] or "string",
            )
        )
    return revisions[::-1]


def _follow(field: dict[str, Any], scope: str, scopes: dict[str, str], answering: Any) -> None:
    if field["ref_topic_id"] is None:
        return
    target = answering(field["ref_topic_id"])
    if scopes.get(target) == scope:
        field["ref_topic_id"], field["ref_state"] = target, "kept"
    else:
        field["ref_state"] = "dangling"


def _edges(
    by_topic: dict[str, list[Observation]], scopes: dict[str, str], answering: Any
) -> tuple[dict[tuple[str, str, str], tuple[Any, Any, list[str]]], set[tuple[str, str]]]:
    edges: dict[tuple[str, str, str], tuple[Any, Any, list[str]]] = {}
    dangling = set()
    for topic, oldest_first in by_topic.items():
        for observation in oldest_first:
            scope, evidence = observation["scope"], observation["evidence_id"]
            for edge in observation["edges"]:
                named = edge["to_topic_id"] or uuid_text("key", scope, edge["to_topic_key"])
                target = answering(named)
                if target == topic:
                    continue
                if scopes.get(target) != scope:
                    dangling.add((topic, edge["kind"]))
                    continue
                since = edge["valid_from"] or observation["observed_at"]
                before, _, cited = edges.get((topic, target, edge["kind"]), (since, None, []))
                known = (min(before, since), edge["valid_until"], sorted({*cited, evidence}))
                edges[topic, target, edge["kind"]] = known
    return edges, dangling
