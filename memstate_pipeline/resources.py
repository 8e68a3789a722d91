"""Resources: the locked store, and the frames that steps pass to each other.

Dagster initialises resources once per run of the in-process executor, so the store's lock is held for the whole run,
whether the command line or the UI started it. Where nights of several shards run side by side (`store.nights_at_once`),
a night holds its shard instead, and the store for parts of its work (`shard_night`).
"""

import os
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
from pydantic import PrivateAttr

from memstate_core.model.errors import StagingOfAnotherRun, StoreLocked
from memstate_core.run.run import Run
from memstate_core.run.store import Store, open_store
from memstate_core.state.files import PRIVATE_UMASK
from memstate_core.state.home import Home
from memstate_core.state.process.interrupts import delayed_interrupts
from memstate_pipeline.nights import IMPORT_INBOX
from memstate_pipeline.partitions import PARTITION_TAG
from memstate_pipeline.run_history import is_of_ended_run
from memstate_pipeline.shard_night import Say, ShardNight, holding_after_nights, holding_beside_nights, waiting
from memstate_pipeline.writers import holding

NOW_TAG = "memstate/now"
"""Run tag with the logical time; without it, the machine's clock is used."""

PLAN_TAG = "memstate/plan"
"""Run tag with the file of a plan that the run is held to."""

ACCEPT_TAG, WHY_TAG, BY_TAG = "memstate/accept", "memstate/why", "memstate/by"
"""Run tags with the gates that a person accepts in this run, separated by commas, the reason, and who accepts."""

TRIAL_TAG = "memstate/trial"
"""Run tag of a run on a clone: its gates warn only, since nothing is served."""


class StoreResource(dg.ConfigurableResource[Any]):
    """The store of a home, locked for writing during a run."""

    home: str
    _held: ExitStack = PrivateAttr(default_factory=ExitStack)
    _store: Store | None = PrivateAttr(default=None)
    _run_id: str | None = PrivateAttr(default=None)
    _night: ShardNight | None = PrivateAttr(default=None)

    @property
    def store(self) -> Store:
        """The store itself."""
        if self._store is None:
            self._store = open_store(Path(self.home))
        return self._store

    def held(self) -> AbstractContextManager[None]:
        """Holds the store for the length of the block; a run that holds it from its start to its end has it already.

        Raises:
            StoreLocked: others held it for too long.
            MemstateError: as for `shard_night.ShardNight.holding_store`.
        """
        return nullcontext() if self._night is None else self._night.holding_store()

    def commit(self) -> None:
        """Sends what the run has done to the URL of the store, in a step, since Dagster logs errors of a teardown only.

        It does nothing for a home of its own.

        Raises:
            LeaseLost: another machine took the lease over; the store at the URL was not changed.
            StoreUnreachable: the storage does not answer.
        """
        if self.store.settings.store.url:
            from memstate_core.night.checkout.session import commit_now

            commit_now(self.store)

    def run(self, shard: str) -> Run:
        """The shard's run in progress.

        Raises:
            StagingMissing: no run was begun, or it has ended.
            StagingOfAnotherRun: what is there was begun by another run of Dagster.
        """
        run = Run.load(self.store.home.work(shard))
        if self._run_id not in (None, run.facts.run_id):
            raise StagingOfAnotherRun(str(run.scratch), run.facts.run_id, str(self._run_id))
        return run

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Takes the store's lock, or that of the shard; both limit the memory of the run as well.

        Raises:
            StoreLocked: another run holds it.
        """
        os.umask(PRIVATE_UMASK)
        self._run_id = context.run.run_id if context.run else None
        began = datetime.now(UTC).isoformat(timespec="seconds")
        holder = f"process {os.getpid()} (Dagster run {self._run_id}, since {began})"
        self._held.enter_context(self._holding(context, holder))

    def _holding(self, context: dg.InitResourceContext, holder: str) -> AbstractContextManager[None]:
        """Holds what the run needs; waits for the lease that a run left whose worker or pod died."""
        say = context.log.info if context.log else lambda _: None

        def is_left(error: StoreLocked) -> bool:
            return context.instance is not None and is_of_ended_run(context.instance, error.facts["holder"])

        return waiting(lambda: self._taken(context, holder, say), is_left, say)

    def _taken(self, context: dg.InitResourceContext, holder: str, say: Say) -> AbstractContextManager[None]:
        if self.store.settings.store.nights_at_once == 1:
            return holding(self.store, holder)
        shard = context.run.tags.get(PARTITION_TAG) if context.run else None
        if shard is None:
            imports = context.run is not None and context.run.job_name == IMPORT_INBOX
            return (holding_beside_nights if imports else holding_after_nights)(self.store, holder, say)
        self._night = ShardNight(self.store, shard, holder, say)
        return self._night.begun()

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Releases what it holds."""
        del context
        self._held.close()


class FrameIOManager(dg.ConfigurableIOManager):
    """Frames between steps, stored as Parquet in the scratch folder of the shard's run."""

    home: str

    def _path(self, context: dg.InputContext | dg.OutputContext) -> Path:
        shard = context.partition_key
        return Home(Path(self.home)).work(shard) / "frames" / f"{context.asset_key.path[-1]}.parquet"

    @delayed_interrupts()
    def handle_output(self, context: dg.OutputContext, obj: pl.DataFrame) -> None:
        """Writes a step's frame."""
        obj.write_parquet(self._path(context))

    @delayed_interrupts()
    def load_input(self, context: dg.InputContext) -> pl.DataFrame:
        """Reads the frame of an earlier step."""
        return pl.read_parquet(self._path(context), glob=False)
