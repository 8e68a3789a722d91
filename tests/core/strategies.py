"""Streams of observations that collide often: few scopes, keys, titles and times.

An observation is a plain dict, as `tests.core.reference` reads it. Below the strategies are functions
of a stream: the ledger's frame, a folded state, a run with a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

from memstate_core.model.forms.form import RESERVED
from memstate_core.model.forms.registry import FORM_KINDS
from memstate_core.model.frames import empty
from memstate_core.model.ids import uuid_text
from memstate_core.model.ledger_tables import ACCESSES, DECISION, EVIDENCE
from memstate_core.placement import turns
from memstate_core.placement.named import place_named
from memstate_core.placement.references import reference_aliases, resolved
from memstate_core.policy.settings import Policy
from memstate_core.run.apply import LATER_STEPS_SET
from memstate_core.run.run import Run, RunFacts
from memstate_core.state.fold.fold import State, fold
from memstate_core.state.graph import EDGE, FIELD, REVISION, TOPIC, Graph
from tests.core import reference
from tests.core.forms import formed, memories
from tests.core.frames import filled
from tests.core.reference import Merge, Observation, World, normalised

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SCOPES = ("user:aya", "project:kite")
KEYS = ("acme", "plan")
TITLES = ("Acme renewal", " ACME  renewal", "acme\trenewal ", "Plan B", "\uff30lan b")
KINDS = (None, "deal", "Deal ", "person")
FREE_IDS = ("t-1", "t-2")
OBSERVATIONS = tuple(f"o{number}" for number in range(12))
EDGE_KINDS = ("part_of", "has_detail", "mentions")
NAMED_IDS = tuple(
    [uuid_text("key", scope, key) for scope in SCOPES for key in KEYS]
    + sorted({
        uuid_text("title", scope, normalised(kind) or "", normalised(title) or "")
        for scope in SCOPES
        for kind in KINDS
        for title in TITLES
    })
    + [uuid_text("observation", scope, name) for scope in SCOPES for name in OBSERVATIONS[:2]]
)  # fmt: skip
"""Ids that keys, titles and observations have, for observations that name them outright."""
FORM_IDS = tuple(uuid_text("key", SCOPES[0], f"{RESERVED}{key}") for key in ("core_block:acme", "verification:records"))
"""Ids of topics that forms write, for records that must not change them."""
NO_SEGMENTS = empty({"topic_id": pl.String, "scope": pl.String})
BUFFER_MIB = 64
"""Kuzu's buffer pool for the small graphs of tests."""

moments = st.integers(0, 6).map(lambda day: EPOCH + timedelta(days=day))
topic_ids = st.sampled_from(FREE_IDS) | st.sampled_from(NAMED_IDS) | st.sampled_from(FORM_IDS)
maybe_moments = st.none() | moments

fields = st.fixed_dictionaries(
    {
        "name": st.sampled_from(("owner", "stage")),
        "value_json": st.sampled_from(('"Aya"', '"Ben"', "null", "1", '["Aya"]')),
        "field_type": st.sampled_from((None, "string", "json", "list")),
        "reference": st.just("keep") | st.none() | topic_ids,
        "why_changed": st.sampled_from((None, "handoff")),
        "confidence": st.sampled_from((None, 0.5, 0.9)),
        "valid_from": maybe_moments,
    }
).map(lambda said: _with_reference(dict(said)))

edges = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(EDGE_KINDS),
        "to_topic_id": st.none() | topic_ids,
        "to_topic_key": st.sampled_from((*KEYS, "nobody")),
        "valid_from": maybe_moments,
        "valid_until": maybe_moments,
    }
)

names = (
    st.tuples(topic_ids, st.none() | st.sampled_from(KEYS))
    | st.tuples(st.none(), st.sampled_from(KEYS))
    | st.just((None, None))
)

sayings = st.fixed_dictionaries(
    {
        "scope": st.sampled_from(SCOPES),
        "observed_at": moments,
        "placement": st.sampled_from((None, None, "extend_topic", "new_topic")),
        "names": names,
        "topic_kind": st.sampled_from(KINDS),
        "title": st.none() | st.sampled_from(TITLES),
        "summary": st.sampled_from((None, "The renewal", "Renewed")),
        "fields": st.lists(fields, max_size=2),
        "edges": st.lists(edges, max_size=2),
    }
)

formed_sayings = st.fixed_dictionaries({"scope": st.sampled_from(SCOPES), "observed_at": moments, "memory": memories()})
"""Records with a form of `memory`, of every kind."""


@st.composite
def streams(draw: st.DrawFn, min_size: int = 1, max_size: int = len(OBSERVATIONS)) -> list[Observation]:
    """A set of observations in the order of arrival, which is not that of their ids or times."""
    said = draw(st.lists(sayings | formed_sayings, min_size=min_size, max_size=max_size))
    numbers = draw(st.permutations(range(len(said))))
    return [_numbered(dict(saying), number) for saying, number in zip(said, numbers, strict=True)]


@st.composite
def streams_with_merges(draw: st.DrawFn) -> tuple[list[Observation], list[Merge]]:
    """A stream, and merges within scopes of topics that it gives, without circles."""
    stream = draw(streams(min_size=3))
    merges: list[Merge] = []
    for scope in SCOPES:
        topics = sorted(topic for topic, said in mergeable(stream).items() if said["scope"] == scope)
        order = draw(st.permutations(topics))
        for place in range(1, len(order)):
            survivor = draw(st.none() | st.integers(0, place - 1))
            if survivor is not None:
                merges.append((order[place], order[survivor]))
    return stream, draw(st.permutations(merges))


def mergeable(stream: Sequence[Observation]) -> dict[str, dict[str, Any]]:
    """The topics that a stream gives, without those that forms write, which nothing merges."""
    topics = reference.fold(stream).topics
    return {topic: said for topic, said in topics.items() if said["topic_kind"] not in FORM_KINDS}


def observation(number: int, **said: Any) -> Observation:
    """One observation, with defaults for all other keys."""
    plain: Observation = {
        "scope": SCOPES[0],
        "observed_at": EPOCH,
        "placement": None,
        "topic_id": None,
        "topic_key": None,
        "topic_kind": None,
        "title": None,
        "summary": None,
        "fields": [],
        "edges": [],
    }
    numbered = {"evidence_id": f"e{number:02}", "observation_id": f"o{number}"}
    return plain | numbered | said


def field(name: str, value_json: str, **said: Any) -> dict[str, Any]:
    """One field of an observation."""
    plain = {"field_type": None, "ref_given": False, "ref_topic_id": None, "why_changed": None}
    return {"name": name, "value_json": value_json, "confidence": None, "valid_from": None} | plain | said


def edge(kind: str, **said: Any) -> dict[str, Any]:
    """One edge of an observation."""
    return {"kind": kind, "to_topic_id": None, "to_topic_key": None, "valid_from": None, "valid_until": None} | said


def day(number: float) -> datetime:
    """A moment so many days after the first."""
    return EPOCH + timedelta(days=number)


def evidence_frame(stream: Sequence[Observation]) -> pl.DataFrame:
    """The ledger's frame (columns EVIDENCE), rows in the order of the stream."""
    rows = [
        {
            **said,
            "kind": "explicit_memory",
            "provenance": "api",
            "imported_at": day(40),
            "run_id": "import",
            "content_sha256": said["evidence_id"],
            "fields": [{"impact_expected": None} | value for value in said["fields"]],
        }
        for said in stream
    ]
    return filled(pl.DataFrame(rows, schema_overrides={n: EVIDENCE[n] for n in (rows[0] if rows else ())}), EVIDENCE)


def folded(
    stream: Sequence[Observation],
    decisions: pl.DataFrame | None = None,
    policy: Policy | None = None,
    settled: Sequence[str] = (),
    accesses: pl.DataFrame | None = None,
    segments: pl.DataFrame = NO_SEGMENTS,
) -> State:
    """The fold of a stream, with or without decisions (DECISION), accesses (ACCESSES) and segments (SEGMENTS)."""
    evidence = evidence_frame(stream)
    placements, aliases = placed(evidence, segments, settled)
    decided = empty(DECISION) if decisions is None else decisions
    return fold(evidence, placements, aliases, decided, policy or Policy(), accesses)


def placed(
    evidence: pl.DataFrame, segments: pl.DataFrame = NO_SEGMENTS, settled: Sequence[str] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Placements (columns PLACEMENTS) and aliases (ALIASES) of evidence, as the `placements` step finds them."""
    named = place_named(evidence, segments.select("topic_id", "scope"), settled)
    placements = pl.concat([named.placements, turns.placements(segments)]) if segments.height else named.placements
    references = reference_aliases(evidence, placements)
    return resolved(placements, references), pl.concat([named.aliases, references])


def accessed(*accesses: dict[str, Any]) -> pl.DataFrame:
    """Accesses (columns ACCESSES) from the relevant values: `topic_id`, `at` in days, `fields`, `failed`."""
    plain = {"scope": None, "fields": None, "source": "test", "failed": False}
    rows = [
        {"access_id": f"a{number}", "recorded_at": day(40), "run_id": "import"} | plain | use | {"at": day(use["at"])}
        for number, use in enumerate(accesses)
    ]
    return filled(pl.DataFrame(rows, schema=ACCESSES), ACCESSES)


def fill(graph: Graph, state: State) -> None:
    """Makes a graph equal to a state, as the `topics` step does."""
    graph.sync(TOPIC, state.topics, keep=LATER_STEPS_SET)
    graph.sync(REVISION, state.revisions)
    graph.sync(FIELD, state.fields, keep=("salience",))
    graph.sync(EDGE, state.edges)


def begin(scratch: Path, *, evidence_version: int | None = None, **policy: Any) -> Run:
    """A run begun on day 10, under the default policy with the given changes."""
    facts = RunFacts(
        run_id="run-1",
        shard="s0",
        shards=1,
        now=day(10),
        number=1,
        base=None,
        evidence_version=evidence_version,
        transitions_version=None,
        fresh_graph=True,
        embedding_model="none",
        policy=Policy(**policy).model_dump(mode="json"),
    )
    return Run.begin(scratch, facts)


def merge_decisions(merges: Sequence[Merge], world: World, kind: str = "merged") -> pl.DataFrame:
    """Merges as recorded decisions (columns DECISION); `world` is the state when they were taken."""
    rows = []
    for dropped, survivor in merges:
        topic = world.topics[dropped]
        payload = {"survivor": survivor, "dropped_title": topic["title"], "dropped_kind": topic["topic_kind"]}
        rows.append((kind, topic["scope"], dropped, payload))
    frame = pl.DataFrame(
        rows,
        orient="row",
        schema={
            "kind": pl.String,
            "scope": pl.String,
            "topic_id": pl.String,
            "_payload": pl.Struct(dict.fromkeys(("survivor", "dropped_title", "dropped_kind"), pl.String)),
        },
    )
    return filled(frame.with_columns(payload_json=pl.col("_payload").struct.json_encode()), DECISION)


def _with_reference(said: dict[str, Any]) -> dict[str, Any]:
    named = said.pop("reference")
    kept = named == "keep"
    return said | {"ref_given": not kept, "ref_topic_id": None if kept else named}


def _numbered(saying: dict[str, Any], number: int) -> Observation:
    if "memory" in saying:
        taken = formed(saying["memory"], saying["scope"], saying["observed_at"], f"o{number}")
        return observation(number, scope=saying["scope"], observed_at=saying["observed_at"], **taken)
    topic_id, topic_key = saying.pop("names")
    return observation(number, topic_id=topic_id, topic_key=topic_key, **saying)
