"""What the columns of the tables of a store mean: of the ledger, of the graph, and of what steps pass on.

The reference page of the tables and the columns that Dagster shows are made from this; types and order are those of
`ledger_tables`, `graph_tables` and `step_frames`. A test compares the names.
"""

from __future__ import annotations

from collections.abc import Mapping

Meanings = Mapping[str, str]

_EVIDENCE: Meanings = {
    "evidence_id": "the beginning of `content_sha256`",
    "observation_id": "as given, or the content hash",
    "scope": "`type:id`",
    "kind": "as in the observation",
    "actor": "as in the observation",
    "session_id": "as in the observation",
    "turn": "as in the observation",
    "observed_at": "when it happened",
    "provenance": "api, ui, llm, mcp, import or revision",
    "source_uri": "where it comes from",
    "text": "the text of the turn",
    "payload_json": "everything without a column of its own, as canonical JSON",
    "content_sha256": "hash of the content, its identity",
    "imported_at": "when the ledger accepted it",
    "run_id": "the import that accepted it",
    "placement": "as asked for",
    "topic_id": "as asked for",
    "topic_key": "as asked for",
    "topic_kind": "as stated",
    "title": "as stated",
    "summary": "as stated",
    "fields": "values as stated",
    "edges": "edges as stated",
}
_TRANSITIONS: Meanings = {
    "seq": "position in the order of decisions",
    "shard": "the shard",
    "run_id": "the run that decided",
    "at": "logical time of the run",
    "kind": "what was decided, such as merged or archived; decisions before a `rolled_back` and after the publication "
    "that it names (`seq` of its payload) are not in effect; `accepted` is a gate that a person let through; `erased` "
    "keeps the place of a decision whose content was erased",
    "scope": "the topic's scope",
    "topic_id": "the topic",
    "payload_json": "the details, scores included",
    "evidence_ids": "the evidence that it rests on; of `set_aside` and `readmitted` the rows, which may be accesses",
    "reason": "why, in a sentence",
    "policy": "hash of the policy that held",
}
_ACCESSES: Meanings = {
    "access_id": "derived from segment and line",
    "scope": "the topic's scope, where the writer knew it",
    "topic_id": "the topic",
    "fields": "the fields accessed; null for the topic as a whole",
    "at": "when",
    "source": "who recorded it, such as server",
    "failed": "whether it is feedback that the topic was of no use",
    "recorded_at": "logical time of the run that collected it",
    "run_id": "that run",
}
_QUARANTINE: Meanings = {
    "quarantine_id": "derived from file, line, reason and bytes, so that a repeated import adds nothing",
    "file": "the file",
    "line": "the line, element or row",
    "reason": "the code",
    "detail": "what was found and what was expected",
    "raw": "the bytes as found, cut at one mebibyte for a row that is too long",
    "raw_bytes": "length of the row",
    "raw_sha256": "hash of the row",
    "imported_at": "when",
    "run_id": "the import",
}
_QUARANTINE_ACTIONS: Meanings = {
    "quarantine_id": "the refused row",
    "action": "`replayed` or `dismissed`",
    "reason": "why it was dismissed",
    "at": "when",
    "run_id": "the command",
}
LEDGER: Mapping[str, Meanings] = {
    "evidence": _EVIDENCE,
    "transitions": _TRANSITIONS,
    "accesses": _ACCESSES,
    "quarantine": _QUARANTINE,
    "quarantine_actions": _QUARANTINE_ACTIONS,
}
"""By table of the ledger."""

_TOPIC: Meanings = {
    "id": "the topic",
    "scope": "`type:id`",
    "title": "the current title",
    "summary": "the current summary",
    "topic_kind": "what the topic is, such as project or person",
    "salience": "mean salience of its fields at the run's logical time, 0 to 10; without fields that of its evidence",
    "failed_salience": "weight of feedback that the topic was of no use, at the run's logical time, 0 to 10",
    "strength": "salience at `reinforced_at`",
    "reinforced_at": "the last event of the topic: evidence or an access",
    "half_life_days": "half-life of the salience since `reinforced_at`",
    "failed_strength": "failed_salience at `reinforced_at`",
    "embedding_model": "the model of its vector",
    "text_hash": "hash of title and summary, by which vectors are cached",
    "state": "active, detached or archived",
    "archived": "whether default answers leave it out",
    "pinned": "whether a person keeps it from being archived",
    "merged_into": "the topic that it was merged into",
    "created_at": "time of its first evidence",
    "updated_at": "time of its last evidence",
}
_FIELD: Meanings = {
    "id": "the field",
    "topic_id": "its topic",
    "name": "its name",
    "field_type": "string, int, float, bool, date, datetime, list or json",
    "ref_topic_id": "the topic that it refers to",
    "ref_state": "`kept`, or `dangling` if the scope has no such topic",
    "strength": "salience at `reinforced_at`",
    "reinforced_at": "the last event of the field: evidence or an access",
    "half_life_days": "half-life of the salience since `reinforced_at`",
    "salience": "salience at the run's logical time, 0 to 10",
    "detached": "whether default answers leave it out",
    "conflicts": "number of values that contradict the current one",
}
_REVISION: Meanings = {
    "id": "the revision, derived from its evidence and its field",
    "topic_id": "its topic",
    "part": "`field`, or `topic` for title, summary and kind",
    "name": "the field, or which of these",
    "rank": "place in the history; 0 is current",
    "value_json": "the value as JSON",
    "field_type": "the type that was stated",
    "valid_from": "when it became true",
    "recorded_at": "when the ledger took it",
    "provenance": "api, ui, llm, mcp, import or revision",
    "why_changed": "as stated",
    "impact_expected": "as stated",
    "confidence": "as stated",
    "evidence_ids": "the evidence that states it",
    "rivals": "revisions that contradict it as of the same time, the nearest first",
    "settled_at": "when it was stated again, which ended the conflict",
    "summarises": "number of revisions that it stands for, in a summary of a history",
}
_RELATED: Meanings = {
    "from_id": "the topic that it starts from",
    "to_id": "the topic that it leads to",
    "kind": "such as part_of or mentions",
    "valid_from": "when it became true",
    "valid_until": "when it ended",
    "evidence_ids": "the evidence that states it",
    "detached": "whether default answers leave it out",
}
_VECTOR: Meanings = {
    "id": "the topic",
    "text_hash": "hash of the text that was embedded",
    "model": "the model",
    "embedding": "the vector of title and summary",
}
_REVIEW: Meanings = {
    "id": "the entry of the queue",
    "topic_id": "the topic to look at",
    "cause_topic_id": "the topic that changed",
    "hops": "extension edges between the two",
    "reason": "why, in a sentence",
    "queued_at": "logical time of the run that queued it",
}
GRAPH: Mapping[str, Meanings] = {
    "Topic": _TOPIC,
    "Field": _FIELD,
    "Revision": _REVISION,
    "Related": _RELATED,
    "Vector": _VECTOR,
    "Review": _REVIEW,
}
"""By table of the graph."""

PLACEMENTS: Meanings = {
    "evidence_id": "the evidence",
    "scope": "its scope",
    "topic_id": "its topic, before merges",
    "operation": "what was done, such as new_topic or version_field",
    "given": "whether the observation named the topic by id or key",
    "reason": "why, in a sentence",
    "score": "similarity of a segment to the topic that it continues",
}
PAIRS: Meanings = {
    "a": "one topic",
    "b": "the other, whose id is greater",
    "scope": "their scope",
    "probability": "that both are the same",
    "weight": "the logit before matches compete",
    "value": "how likely `same` is by the answers so far, times an eighth of the pairs of topics it joins, from 8 on",
    "pair_kind": "the sign that contradicts, if any, and whether the sources are the same (`within`) or not (`across`)",
    "confirmed_by": "how many answers about such pairs merge it; 0 where it is merged without them, or not",
    "band": "`merge` or `review`",
    "features": "each comparison with the level of agreement and its part of the logit",
    "reading": "what agrees, differs, or only one has; of pairs in the merge band",
}
_KEPT = ("evidence_id", "observation_id", "scope", "kind", "actor", "session_id", "turn", "observed_at", "text")
SERVED_EVIDENCE: Meanings = {name: _EVIDENCE[name] for name in _KEPT} | {
    "topic_id": "its topic, after merges",
    "vector_row": "row of its vector; null if the text is not embedded",
    "tool": "the tool that an event called",
    "status": "how the call ended",
    "path": "the file that an event concerns",
}
"""Evidence as a snapshot serves it."""
