"""A store: its folder and settings, and the ledger and encoder that they define."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from memstate_core.embed.encoder import Encoder
from memstate_core.embed.model_name import ModelName
from memstate_core.model.errors import HomeUnsupported
from memstate_core.model.scope import Layout
from memstate_core.policy.settings import Settings, load_settings
from memstate_core.state.home import Home
from memstate_core.state.layout import layout_now
from memstate_core.state.ledger.ledger import Ledger

_UNSUPPORTED = re.compile(r"[\x00-\x1f\x7f?\[\]|^\\\ud800-\udfff]|%[0-9A-Fa-f]{2}")
"""Delta Lake panics on these or decodes them, also in the target of a symbolic link; SQLite's URLs end at `?`.
Bytes that are not UTF-8 appear as surrogates."""


@dataclass(frozen=True)
class Store:
    """One home with its settings.

    Attributes:
        home: the folder.
        settings: the settings.
        becoming: the layout to see instead of the one on record, for a change of the number of shards.
        models: where the relative path of a model begins; None for the home.
    """

    home: Home
    settings: Settings
    becoming: Layout | None = None
    models: Path | None = None

    @cached_property
    def ledger(self) -> Ledger:
        """The tables that are the source of truth."""
        return Ledger(self.home.ledger, self.settings.store.lock_wait_seconds)

    @cached_property
    def encoder(self) -> Encoder:
        """The embedding model, loaded on first use."""
        return Encoder.of(self.settings.embedding, self.models_base)

    @property
    def models_base(self) -> Path:
        """Where the relative path of a model begins: the home, or for a clone the home that it was made of."""
        return self.models or self.home.cloned_from() or self.home.root

    @property
    def layout(self) -> Layout:
        """How scopes are divided among shards now; another process may change it."""
        return self.becoming or layout_now(self.home, self.settings.store.shards)

    @property
    def shards(self) -> list[str]:
        """The names of the store's shards, read anew each time, as `layout` is."""
        return self.layout.names


def with_model(store: Store, recorded: str) -> Store:
    """The store with the embedding model and prefixes of a name on record, as a manifest has it."""
    if recorded == store.encoder.model:
        return store
    named = ModelName.parsed(recorded)._asdict()
    embedding = store.settings.embedding.model_copy(update={**named, "dimension": 0})
    return replace(store, settings=store.settings.model_copy(update={"embedding": embedding}))


def open_store(root: Path, environ: Mapping[str, str] = os.environ) -> Store:
    """The store in a folder; the folder need not exist yet.

    Raises:
        HomeUnsupported: its path cannot be addressed.
        SettingsError: its settings are not allowed.
    """
    found = _UNSUPPORTED.search(str(root)) or _UNSUPPORTED.search(str(root.resolve()))
    if found:
        raise HomeUnsupported(str(root), found.group())
    return Store(Home(root), load_settings(root, environ))
