"""The graph: topics, their histories, edges and vectors in Kuzu. The only module that imports kuzu.

Everything is written in sets. `sync` makes the rows of a table equal to a frame by the smallest change:
rows that are new are copied in, or created if they are few, rows that differ are replaced, rows that are gone are
deleted. So a rebuild, a nightly run and a repeated step are one code path, and repeating a step changes nothing.

Edges are written all at once, in one transaction: see `Graph._rewrite_edges`.

Histories and vectors are in tables of their own without edges, because Kuzu deletes and copies such rows
in bulk, while setting a long string or a vector in place is slow and lets the file grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kuzu
import polars as pl

from memstate_core.model.errors import DimensionMismatch
from memstate_core.model.frames import Schema, conform, empty
from memstate_core.model.graph_tables import EDGES, FIELDS, REVIEWS, REVISIONS, TOPICS, VECTORS, vector_columns
from memstate_core.state import kept_open
from memstate_core.state.files import require_space
from memstate_core.state.kuzu_tables import EDGE_TABLE, creation, edge_table, from_kuzu, node_table, to_kuzu
from memstate_core.state.process.cleared_memory import cleared_memory
from memstate_core.state.process.memory import reserving

Reading = Callable[[], AbstractContextManager[None]]
"""Makes the context in which rows are read."""

_WRITTEN = 3
"""Bytes that may be written for each byte of rows: the write-ahead log, pages, and their copies at a checkpoint."""

FEW_ROWS, _FEW_BYTES = 256, 1 << 20
"""Maximum number of rows, and of bytes, that are created rather than copied. To copy any number of rows into a table
takes Kuzu 0.11.3 some 10 to 40 ms; to create five takes 2 ms, 500 take 8, and thousands as long as to copy them."""

_WRITE_SPACE = 1 << 43
_READ_SPACE = 1 << 38
"""Bytes of address space that Kuzu reserves for a graph; a process has room for fifteen of the first size."""


@dataclass(frozen=True)
class Table:
    """A table of the graph: its columns, what identifies a row, which topic a row belongs to."""

    name: str
    schema: Schema
    key: tuple[str, ...] = ("id",)
    owner: str = "topic_id"


@dataclass(frozen=True)
class Synced:
    """What a `sync` changed: rows, and the topics that they belong to."""

    inserted: int
    updated: int
    deleted: int
    topics: pl.Series


TOPIC = Table("Topic", TOPICS, owner="id")
FIELD = Table("Field", FIELDS)
REVISION = Table("Revision", REVISIONS)
VECTOR = Table("Vector", VECTORS, owner="id")
REVIEW = Table("Review", REVIEWS)
EDGE = Table(EDGE_TABLE, EDGES, key=("from_id", "to_id", "kind"), owner="from_id")
NODE_TABLES = (TOPIC, FIELD, REVISION, VECTOR, REVIEW)


class Graph:
    """An open graph. Make one with `open_graph`."""

    def __init__(self, connection: kuzu.Connection, folder: Path, reading: Reading) -> None:
        self._connection, self._folder, self._reading = connection, folder, reading

    def create(self) -> None:
        """Creates the tables of an empty graph."""
        for table in NODE_TABLES:
            self._run(node_table(table.name, table.schema))
        self._run(edge_table())

    def read(self, table: Table, columns: list[str] | None = None, where: str = "", **given: Any) -> pl.DataFrame:
        """Rows of a table as a frame of its declared columns (or of those named).

        Args:
            table: which table.
            columns: the columns to read; all without it.
            where: a Cypher condition over `r` (for edges also over `a` and `b`, its two topics).
            given: the values of the condition's `$parameters`.
        """
        declared = self._schema(table)
        schema = {name: declared[name] for name in columns or declared}
        if table is EDGE:
            pattern, ends = f"(a:Topic)-[r:{EDGE_TABLE}]->(b:Topic)", {"from_id": "a.id", "to_id": "b.id"}
        else:
            pattern, ends = f"(r:{table.name})", {}
        wanted = ", ".join(f"{ends.get(name, f'r.{name}')} AS {name}" for name in schema)
        condition = f" WHERE {where}" if where else ""
        with self._reading():
            result = self._run(f"MATCH {pattern}{condition} RETURN {wanted}", given)
            return from_kuzu(result.get_as_arrow(-1), schema)

    def count(self, table: Table) -> int:
        """How many rows a table has."""
        pattern = f"()-[r:{EDGE_TABLE}]->()" if table is EDGE else f"(r:{table.name})"
        return int(self._run(f"MATCH {pattern} RETURN count(*)").get_next()[0])

    def sync(
        self,
        table: Table,
        desired: pl.DataFrame,
        keep: tuple[str, ...] = (),
        quiet: tuple[str, ...] = (),
        owners: pl.Series | None = None,
    ) -> Synced:
        """Makes the rows of a table, or those of some topics, equal to a frame.

        Args:
            table: which table.
            desired: the rows to have, of the table's columns.
            keep: columns that another step sets; they are not compared, and stay where a topic is updated.
            quiet: columns that are written, and whose change alone is no change of the topic.
            owners: ids of the topics whose rows the frame has, other rows stay; None for those of all.
        """
        desired = conform(desired, self._schema(table))
        compared_columns = [name for name in table.schema if name not in keep]
        current = self.read_of(table, compared_columns, owners)
        key = list(table.key)
        fingerprint = pl.struct(compared_columns).hash()
        said = pl.struct(name for name in compared_columns if name not in quiet).hash()
        compared = desired.with_columns(_is=fingerprint, _says=said).join(
            current.select(*key, _was=fingerprint, _said=said), on=key, how="left"
        )
        new = compared.filter(pl.col("_was").is_null()).select(desired.columns)
        changed = compared.filter(pl.col("_was") != pl.col("_is")).select(desired.columns)
        gone = current.join(desired, on=key, how="anti")
        if table is EDGE:
            if new.height + changed.height + gone.height:
                self._rewrite_edges(pl.concat([self._others(owners), desired]))
        elif table is TOPIC:
            self.delete(table, gone.select(key))
            self.update(table, changed.select(compared_columns))
            self.insert(table, new)
        else:
            self.delete(table, pl.concat([gone.select(key), changed.select(key)]))
            self.insert(table, pl.concat([new, changed]))
        stated = compared.filter(pl.col("_said") != pl.col("_says"))
        owners = pl.concat([rows[table.owner] for rows in (new, stated, gone)]).unique().sort()
        return Synced(new.height, changed.height, gone.height, owners)

    def read_of(
        self, table: Table, columns: list[str] | None = None, owners: pl.Series | None = None, where: str = ""
    ) -> pl.DataFrame:
        """The rows of some topics, or of all; arguments as for `read`, and the ids of the topics.

        Only the keys of the other rows are read, unless most rows are wanted.
        """
        if owners is None:
            return self.read(table, columns, where)
        wanted = pl.col(table.owner).is_in(owners.implode())
        if table is EDGE:
            return self.read(table, columns, where).filter(wanted)
        keys = self.read(table, list(dict.fromkeys(["id", table.owner])), where)
        ids = keys.filter(wanted).select("id")
        if ids.height * 2 > keys.height:
            named = None if columns is None else list(dict.fromkeys([*columns, "id"]))
            rows = self.read(table, named, where).join(ids, on="id", how="semi", maintain_order="left")
            return rows if columns is None else rows.select(columns)
        return self._read_by_id(table, columns, ids)

    def _read_by_id(self, table: Table, columns: list[str] | None, ids: pl.DataFrame) -> pl.DataFrame:
        declared = self._schema(table)
        schema = {name: declared[name] for name in columns or declared}
        if ids.is_empty():
            return empty(schema)
        wanted = ", ".join(f"r.{name} AS {name}" for name in schema)
        with self._reading():
            statement = f"LOAD FROM $rows WITH id AS _id MATCH (r:{table.name} {{id: _id}}) RETURN {wanted}"
            result = self._run(statement, {"rows": to_kuzu(ids)})
            return from_kuzu(result.get_as_arrow(-1), schema)

    def _others(self, owners: pl.Series | None) -> pl.DataFrame:
        """The edges that do not start at some topics; none where those are all."""
        return empty(EDGES) if owners is None else self.read(EDGE).filter(~pl.col("from_id").is_in(owners.implode()))

    def insert(self, table: Table, rows: pl.DataFrame) -> None:
        """Copies new rows in; a graph without vectors takes those of any dimension.

        Raises:
            DimensionMismatch: the graph holds vectors of another dimension.
        """
        if table is VECTOR and rows.height:
            self._fit(rows.schema["embedding"])
        added = conform(rows, self._schema(table))
        if added.height and table is EDGE:
            self._rewrite_edges(pl.concat([self.read(EDGE), added]))
        elif added.height:
            self._copy(table, added)

    @property
    def dimension(self) -> int:
        """How many dimensions the vectors of topics have."""
        types = dict(self._run(f"CALL TABLE_INFO('{VECTOR.name}') RETURN name, type").get_all())
        return int(types["embedding"].removeprefix("FLOAT[").removesuffix("]"))

    def _schema(self, table: Table) -> Schema:
        return vector_columns(self.dimension) if table is VECTOR else table.schema

    def _fit(self, embeddings: pl.DataType) -> None:
        """Makes the table of vectors again in the dimension of new ones, if it is empty."""
        found, expected = embeddings.shape[0] if isinstance(embeddings, pl.Array) else self.dimension, self.dimension
        if found == expected:
            return
        if held := self.read(VECTOR, ["model"])["model"].to_list():
            raise DimensionMismatch(held[0], found, expected, "the graph")
        self._run("BEGIN TRANSACTION")
        self._run(f"DROP TABLE {VECTOR.name}")
        self._run(node_table(VECTOR.name, vector_columns(found)))
        self._run("COMMIT")

    def _rewrite_edges(self, edges: pl.DataFrame) -> None:
        """Rewrites all edges in one transaction.

        Kuzu 0.11.3 mixes up list properties when it copies edges into a table that already has some and topics were
        added in between; a new table is free of this. A statement that fails rolls the transaction back.
        """
        self._require_space(edges)
        self._run("BEGIN TRANSACTION")
        self._run(f"DROP TABLE {EDGE_TABLE}")
        self._run(edge_table())
        if edges.height:
            self._copy(EDGE, edges)
        self._run("COMMIT")

    def _copy(self, table: Table, rows: pl.DataFrame) -> None:
        self._require_space(rows)
        few = rows.height <= FEW_ROWS and rows.estimated_size() <= _FEW_BYTES and table is not EDGE
        statement = creation(table.name, rows.columns) if few else f"COPY {table.name} FROM $rows"
        self._run(statement, {"rows": to_kuzu(rows)})

    def update(self, table: Table, rows: pl.DataFrame) -> None:
        """Sets the columns that a frame has beside `id`, on the nodes with these ids."""
        names = [name for name in rows.columns if name != "id"]
        if rows.height and names:
            self._require_space(rows)
            aliases = ", ".join(f"{name} AS _{name}" for name in rows.columns)
            values = ", ".join(f"r.{name} = _{name}" for name in names)
            self._run(
                f"LOAD FROM $rows WITH {aliases} MATCH (r:{table.name} {{id: _id}}) SET {values}",
                {"rows": to_kuzu(rows)},
            )

    def delete(self, table: Table, keys: pl.DataFrame) -> None:
        """Deletes the rows with these keys; topics with their edges."""
        if not keys.height:
            return
        given = {"rows": to_kuzu(keys)}
        if table is EDGE:
            self._run(
                "LOAD FROM $rows WITH from_id AS _from, to_id AS _to, kind AS _kind "
                "MATCH (a:Topic {id: _from}) MATCH (b:Topic {id: _to}) "
                f"MATCH (a)-[r:{EDGE_TABLE}]->(b) WHERE r.kind = _kind DELETE r",
                given,
            )
        else:
            verb = "DETACH DELETE" if table is TOPIC else "DELETE"
            self._run(f"LOAD FROM $rows WITH id AS _id MATCH (r:{table.name} {{id: _id}}) {verb} r", given)

    def checkpoint(self) -> None:
        """Writes everything into the one file."""
        self._run("CHECKPOINT")

    def _require_space(self, rows: pl.DataFrame) -> None:
        """Refuses to write rows that the disk may have no room for: Kuzu aborts the process where it is full."""
        require_space(self._folder, _WRITTEN * int(rows.estimated_size()))

    def _run(self, statement: str, given: dict[str, Any] | None = None) -> Any:
        return self._connection.execute(statement, given or {})


@contextmanager
def open_graph(
    path: Path, *, read_only: bool = False, buffer_mib: int = 2048, reading: Reading = nullcontext
) -> Iterator[Graph]:
    """Opens a graph file, creating it (with its tables) when it is to be written and does not exist.

    Args:
        path: the graph's one file.
        read_only: open a published graph; nothing beside the file is created.
        buffer_mib: Kuzu's buffer pool in MiB; always given, since its default takes most of the machine.
        reading: makes the context in which rows are read, such as one that names damage of a snapshot.

    Raises:
        DiskFull: the disk has no room for what opening or writing the graph may take; also where rows are written.
    """
    is_new = not path.exists()
    if not read_only:
        require_space(path.parent, 0 if is_new else path.stat().st_size)
    with (
        kept_open.opened(path, not read_only, lambda: _database(path, buffer_mib, read_only)) as database,
        nullcontext() if database.read_only else cleared_memory(),
        kuzu.Connection(database) as connection,
    ):
        if read_only and not database.read_only:  # kept open by an earlier step, which writes
            connection.execute("BEGIN TRANSACTION READ ONLY")
        graph = Graph(connection, path.parent, reading)
        if is_new:
            graph.create()
        yield graph
        if not read_only:
            graph.checkpoint()


@contextmanager
def _database(path: Path, buffer_mib: int, read_only: bool) -> Iterator[kuzu.Database]:
    space, buffer = _read_space(path) if read_only else _WRITE_SPACE, buffer_mib << 20
    clearing = nullcontext if read_only else cleared_memory
    with reserving(space + buffer):
        with clearing():
            database = kuzu.Database(str(path), buffer_pool_size=buffer, read_only=read_only, max_db_size=space)
        try:
            yield database
        finally:
            with clearing():
                database.close()


def _read_space(path: Path) -> int:
    """Bytes of address space for a graph that does not grow: a power of two."""
    size = path.stat().st_size if path.exists() else 0
    return max(_READ_SPACE, 1 << size.bit_length())


def leftovers(path: Path) -> list[Path]:
    """Files beside a graph which show that it was not closed cleanly."""
    return [found for suffix in (".wal", ".shadow") if (found := path.with_name(path.name + suffix)).exists()]
