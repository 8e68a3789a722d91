"""The facts of `memstate_core.policy.explain` as English sentences."""

from __future__ import annotations

from typing import Any

_EFFECT = {"summarise": "its fields are summarised", "detach": "its fields and edges are detached"}


def explanation_lines(facts: dict[str, Any]) -> list[str]:
    """What governs the topic, which values apply, whether its scope is under pressure, and what happens next."""
    return [*_governed(facts), _half_life(facts), _thresholds(facts), _kind(facts), _pressure(facts), *_next(facts)]


def _governed(facts: dict[str, Any]) -> list[str]:
    rule = facts["rule"]
    first = f"Rule {rule['name']!r} governs it ({rule['on']}, {rule['do']}): {rule['when']}" if rule else None
    return [
        first or "No rule governs it, so the built-in ladder applies.",
        *(
            f"Rule {rule['name']!r} ({rule['do']}) would govern it in a run in which {rule['on']} concerns it."
            for rule in facts["waiting"]
        ),
        *(f"Merge rule {name!r} fits it." for name in facts["merge_rules"]),
    ]


def _half_life(facts: dict[str, Any]) -> str:
    base = facts["values"]["half_life"]
    now = f"Its salience is {facts['salience']:.3g} and halves every {facts['half_life_days']:.4g} days at present"
    return f"{now}; without accesses, every {base['value']:.4g} days ({base['source']})."


def _thresholds(facts: dict[str, Any]) -> str:
    summarise, detach, archive = (
        f"{facts['values'][name]['value']:.4g} ({facts['values'][name]['source']})"
        for name in ("summarise", "detach", "archive")
    )
    superseded = ", below that of detaching since a newer topic supersedes it" if facts["redundant"] else ""
    return (
        f"Fields are summarised below {summarise} and detached below {detach};"
        f" a topic is archived below {archive}{superseded}."
    )


def _kind(facts: dict[str, Any]) -> str:
    if facts["pinned"]:
        return f"It is pinned by {facts['pinned']}."
    kind = f"Its kind {facts['topic_kind']!r}" if facts["topic_kind"] else "It has no kind, which"
    return f"{kind} is not pinned."


def _pressure(facts: dict[str, Any]) -> str:
    held = facts["pressure"]
    under = "is under pressure" if held["under"] else "is not under pressure"
    return (
        f"Its scope {facts['scope']} has {held['active']} active topics and {under}, which begins at"
        f" {held['soft_limit']} (topic_count_soft_limit); the bound is {held['bound']} (max_active_topics)"
        + (f", which its {held['pinned']} pinned topics exceed." if held["pinned"] > held["bound"] else ".")
    )


def _next(facts: dict[str, Any]) -> list[str]:
    if facts["state"] == "archived":
        return ["It is archived; new evidence or an access restores it."]
    if facts["pinned"]:
        return ["It stays as it is: pinned topics are never archived."]
    surplus = facts["pressure"]["surplus"]
    over = [f"Its scope is over the bound: the first {surplus} topics in eviction order are archived in the next run."]
    return [_step(facts), *(over if surplus else [])]


def _step(facts: dict[str, Any]) -> str:
    rule = facts["rule"]
    if rule and rule["do"] == "archive":
        return f"It is archived in the next run, since rule {rule['name']!r} asks for it."
    if rule:
        effect = _EFFECT[rule["do"]]
        return f"In the next run {effect}; while rule {rule['name']!r} governs it, it is archived only over the bound."
    if not facts["archive_below"]:
        return "It is archived only over the bound, since its threshold is 0."
    needs = [f"the scope has {facts['pressure']['soft_limit']} or more active topics"]
    needs += ["no active topic depends on it"] if facts["depended_on"] else []
    return f"It is archived {_fades(facts)}, and only while {' and '.join(needs)}."


def _fades(facts: dict[str, Any]) -> str:
    limit, salience, days = facts["archive_below"], facts["salience"], facts["archive_in_days"]
    if salience < limit:
        return f"as its salience (now {salience:.3g}) is below {limit:.4g}"
    falls = f"once its salience (now {salience:.3g}) falls below {limit:.4g}"
    return f"{falls}, in about {days:.0f} days without accesses"
