"""Sections of `memstate.toml` without a module of their own: store, ingest, segment, embedding, schedule.

The docstring of each key states its unit and effect; the settings reference is generated from them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from memstate_core.policy.extractor import VariableName
from memstate_core.policy.loading import Section, form

_CRON_FORM = (
    "five fields (minute, hour, day of month, month, day of week) that name a time which occurs,"
    " such as '0 2 * * *' for 02:00 every day"
)

STORE_URL = r"(s3|gs|az|file)://[^@?#]+"
STORE_URL_FORM = "an address such as s3://bucket/prefix, gs://…, az://… or file://…, without credentials or options"
"""What the URL of a store looks like: no credentials, no options."""


class StoreSettings(Section):
    """Shards, retention, memory and priority of the store."""

    shards: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of shards of a store that begins. Scopes are hashed to shards; each has its own graph and is one Dagster
    partition. Once something is published, `memstate reshard N` changes the number, here too; after such a change runs
    and corrections refuse another value."""
    keep_snapshots: Annotated[int, Field(ge=1, le=1000)] = 7
    """Number of published snapshots that each shard keeps for rollback and as-of queries; older ones are deleted."""
    keep_snapshot_days: Annotated[float, Field(ge=0, le=36_500)] = 0.0
    """Age in days beyond which a published snapshot is deleted as well, by the logical times of the nights; 0 keeps any
    age. The served snapshot always stays."""
    keep_snapshot_mib: Annotated[int, Field(ge=0, le=16_777_216)] = 0
    """Total size of the snapshots of a shard, in MiB, beyond which the oldest are deleted as well; 0 sets no limit. The
    served snapshot always stays."""
    graph_buffer_mib: Annotated[int, Field(ge=64, le=1_048_576)] = 2048
    """Size of the graph database's buffer pool, in MiB, for each graph that a run opens."""
    memory_mib: Annotated[int, Field(ge=0, le=16_777_216)] = 0
    """Memory that a run, an import or a correction may allocate beyond what its process holds at the beginning, in MiB
    (Linux). A run that needs more finds the evidence that takes it and sets it aside; other commands fail and change
    nothing. 0 stands for four fifths of the machine's memory."""
    lock_wait_seconds: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds that a writer waits for the ledger's lock before it fails with exit code 3."""
    nights_at_once: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of shards that have their night at the same time, each in a process of its own with memory of its own.
    With 1 they have it one after another. Machines of a store at a URL need the same value, or 1."""
    search_processes: Annotated[int, Field(ge=0, le=256)] = 0
    """Number of processes in which a night searches scopes for duplicates, each with memory of its own, where there are
    so many to search that it saves time. 0 stands for the cores of the machine, divided by `nights_at_once`, and at
    most 8. Results do not depend on it."""
    niceness: Annotated[int, Field(ge=0, le=19)] = 5
    """Scheduling priority of maintenance, in steps of nice(1); at 0 it competes with a server on the same machine."""
    url: Annotated[str, Field(pattern=rf"^$|^{STORE_URL}$"), form(STORE_URL_FORM)] = ""
    """Address at which the store is kept, so that any machine may write it next: s3://, gs://, az:// or file://. This
    home is a checkout of it then. Credentials come from the environment. Empty: the store is this home."""
    lease_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60.0
    """Seconds after its last renewal at which the lease of a store at a URL may be taken by another machine, by the
    clock of the storage. A writer renews it three times as often."""


class IngestSettings(Section):
    """Limits on imported rows."""

    max_line_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    """Largest row of a dump, in MiB; longer rows are quarantined. It also bounds a topic that a language model
    returns."""
    max_future_days: Annotated[float, Field(ge=0, le=36_500)] = 31.0
    """How far ahead of the run's clock a date may lie, in days; rows with later dates are quarantined."""
    chunk_rows: Annotated[int, Field(ge=100, le=10_000_000)] = 50_000
    """Number of rows that an import commits to the ledger at a time. Larger batches are faster and use more memory."""
    inbox_settle_seconds: Annotated[float, Field(ge=0, le=3600)] = 2.0
    """Seconds that a file of the inbox must not have changed before it is read. An import waits this long for a file
    that changed just before; one that is still being written then, or open for writing, stays for the next."""


class SegmentSettings(Section):
    """How sessions are cut into segments of turns about one subject (TextTiling)."""

    window: Annotated[int, Field(ge=1, le=20)] = 3
    """Number of turns on each side of a gap whose mean vectors are compared. A wider window smooths
    over digressions."""
    min_turns: Annotated[int, Field(ge=1, le=100)] = 4
    """Shortest segment, in turns: a boundary is at least this far from both ends of the session, and no other gap
    this near has a lower similarity."""
    max_turns: Annotated[int, Field(ge=2, le=1000)] = 24
    """Longest segment, in turns, `min_turns` or more; longer ones are cut into nearly equal parts."""

    @model_validator(mode="after")
    def _shortest_below_longest(self) -> SegmentSettings:
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns ({self.min_turns}) must not exceed max_turns ({self.max_turns})")
        return self


class EmbeddingSettings(Section):
    """The sentence encoder."""

    model: Annotated[str, Field(min_length=1)] = "all-MiniLM-L6-v2"
    """Sentence encoder: `all-MiniLM-L6-v2` (packaged), the folder of a sentence-transformers model of any dimension (a
    relative path begins at the home), the name of one in the local cache of the Hugging Face Hub, or `hashing`, which
    compares words and spellings only and loads no model. Nothing is downloaded. After a change the next run embeds
    every topic again."""
    dimension: Annotated[int, Field(ge=0, le=65_536)] = 0
    """Number of dimensions that the encoder's vectors must have; with others no run begins to write. 0 takes as many as
    the encoder has."""
    endpoint: Annotated[
        str,
        Field(pattern=r"^(https?://[^?#@]+)?$"),
        form("a URL such as http://localhost:8080/v1, without credentials or options"),
    ] = ""
    """Base URL of an OpenAI-compatible API that embeds texts, such as `http://localhost:8080/v1`, without credentials;
    `model` names its model then. The texts of turns, topics and questions are sent there. Empty: the encoder runs on
    this machine."""
    api_key_env: VariableName = ""
    """Name of the environment variable that holds the endpoint's API key; empty for a server that needs none."""
    max_chars: Annotated[int, Field(ge=100, le=1_000_000)] = 8000
    """Longest part of a text that is sent to an endpoint, in characters from its beginning."""
    max_requests: Annotated[int, Field(ge=0)] = 10_000
    """Most requests to an endpoint by one process, repetitions included. What was answered is kept, so the next run
    goes on where one stopped."""
    max_tokens: Annotated[int, Field(ge=0)] = 20_000_000
    """Most tokens that an endpoint reads for one process; checked before each request."""
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """Seconds until a request without an answer is given up and, if retries are left, repeated."""
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    """Repetitions of a request after a timeout, a lost connection, a server error or an answer with wrong vectors."""
    rate_limit_retries: Annotated[int, Field(ge=0, le=1000)] = 20
    """Repetitions of a request that the endpoint refused for its rate limit (HTTP 429)."""
    backoff_cap_seconds: Annotated[float, Field(ge=0, le=86_400)] = 120.0
    """Longest wait before a repetition, in seconds. Waits follow `Retry-After`; without it they double from one
    second."""
    query_prefix: Annotated[str, Field(max_length=2000)] = ""
    """Text that the encoder expects before a question, such as `query: ` for models of the E5 family or the
    instruction of a BGE model, its space at the end included. After a change the next run embeds every topic again."""
    passage_prefix: Annotated[str, Field(max_length=2000)] = ""
    """Text that the encoder expects before a text that is searched, such as `passage: `. After a change the next run
    embeds every topic again."""
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 64
    """Number of texts that the encoder takes at a time, or that a request to an endpoint has. Larger batches use more
    memory."""
    runtime: Literal["auto", "openvino-float32", "sentence-transformers"] = "auto"
    """What runs the model. `auto`: OpenVINO, in bfloat16 where the processor has instructions for it and in float32
    elsewhere; 4,096 texts and more run on an NVIDIA GPU where torch finds one. `openvino-float32`: OpenVINO in float32
    on every processor. `sentence-transformers`: torch on the processor, which takes seconds to start. Models that are
    no BERT always run on torch, and so does what OpenVINO gives other vectors for. The vectors of all are those of one
    model: cosine 0.9999 or more to each other."""


class ScheduleSettings(Section):
    """When the nightly job, the weekly verification, the monthly retention and the monthly compaction run."""

    cron: str = "0 2 * * *"
    """When the nightly run starts: a cron expression of five fields (minute, hour, day of month, month, day of week),
    in `time_zone`."""
    verify_cron: str = "0 5 * * sun"
    """When the whole store is verified, as `memstate verify` does it, in the form of `cron`; an empty text for never.
    Nights that come due meanwhile wait."""
    retention_cron: str = "0 6 1 * *"
    """When what `[retention]` no longer keeps is removed, as `memstate retention` does it, in the form of `cron`; an
    empty text for never."""
    compaction_cron: str = "0 7 1 * *"
    """When small files of the ledger are joined and superseded ones removed, as `memstate compact` does it, in the form
    of `cron`; an empty text for never."""
    pressure_rows: Annotated[int, Field(ge=0)] = 10_000
    """A night is requested ahead of schedule for a shard in which so many pieces of evidence wait for one, while
    `memstate ui` or the daemon runs; 0 for never."""
    skip_unchanged_days: Annotated[float, Field(ge=0, le=366)] = 0.0
    """A shard to which nothing was written since its last night, and in which no step of forgetting is due, has no
    night until its snapshot is so many days old; 0 for a night of every shard each time. Meanwhile its answers have the
    salience of its last night."""
    stale_hours: Annotated[float, Field(gt=0, le=100_000)] = 36.0
    """Hours after which a served snapshot counts as stale: it is notified of, its asset turns red, and `memstate
    doctor` names evidence that has waited that long. To what may be that old for want of a change,
    `skip_unchanged_days` is added."""
    max_run_hours: Annotated[float, Field(ge=0, le=8760)] = 24.0
    """Hours after which Dagster's daemon ends a run that it started, and marks it as failed, so that a step that hangs
    does not keep later nights waiting; 0 for no limit. Runs of the command line have none."""
    time_zone: str = "UTC"
    """Time zone of these times, by its IANA name, such as `Europe/Berlin`. A time that a change of the
    clocks skips runs at the next one that exists; one that comes twice runs once."""

    @field_validator("cron", "verify_cron", "retention_cron", "compaction_cron")
    @classmethod
    def _is_cron(cls, cron: str, info: ValidationInfo) -> str:
        from croniter import croniter  # only where a file or variable sets the key

        if not cron and info.field_name != "cron":
            return cron
        try:
            if (fields := len(cron.split())) != 5:
                raise ValueError(f"found {fields} field{'' if fields == 1 else 's'}")
            croniter.expand(cron, strict=True)
        except ValueError as error:
            raise ValueError(f"{error}; expected {_CRON_FORM}") from None
        return cron

    @field_validator("time_zone")
    @classmethod
    def _is_time_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValueError(f"no time zone {name!r}; expected an IANA name, such as 'Europe/Berlin'") from None
        return name
