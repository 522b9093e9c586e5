"""The tables of a journal in PostgreSQL: migrations, queries, pruning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, LiteralString, Protocol

from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import PruneResult
from weft.durability.journal.pruning import ReachableRecords, beyond, lots
from weft.durability.journal.refusals import newer
from weft.durability.journal.rows import RecordBatch
from weft.durability.journal.tables import PAGE, RunRow, Tables
from weft.workflow.postgres.connections import Connection, PostgresPool, Rows, rows_of

OURS = 0x77656674  # "weft" in ASCII: the first key of our advisory lock
MIGRATIONS: Sequence[Sequence[LiteralString]] = (
    (
        """CREATE TABLE weft_runs (no integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL UNIQUE, flow text NOT NULL, wall text NOT NULL,
        ended_wall text NOT NULL DEFAULT '', part integer NOT NULL DEFAULT 1, status text,
        header bytea NOT NULL)""",
        # `seq`: the number of the last record in the body.
        """CREATE TABLE weft_batches (run integer NOT NULL REFERENCES weft_runs ON DELETE CASCADE,
        seq bigint NOT NULL, part integer NOT NULL, body bytea NOT NULL, PRIMARY KEY (run, seq))""",
        "CREATE TABLE weft_blobs (digest bytea PRIMARY KEY, body bytea NOT NULL)",
        """CREATE TABLE weft_asking (no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run integer NOT NULL REFERENCES weft_runs ON DELETE CASCADE, node text NOT NULL)""",
        "CREATE INDEX ON weft_asking (run)",
        """CREATE TABLE weft_letters (no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run integer NOT NULL REFERENCES weft_runs ON DELETE CASCADE, node text,
        taken boolean NOT NULL DEFAULT false, body bytea NOT NULL)""",
        "CREATE INDEX ON weft_letters (run)",
        # What is in there is compressed, or too short for it.
        "ALTER TABLE weft_blobs ALTER body SET STORAGE EXTERNAL",
        "ALTER TABLE weft_batches ALTER body SET STORAGE EXTERNAL",
    ),
    (
        # A weft of format 1 has its runs by locks of its session, and would not see a lease.
        """DO $$ BEGIN IF EXISTS (SELECT FROM pg_locks JOIN pg_database ON
        pg_database.oid = pg_locks.database AND datname = current_database()
        WHERE locktype = 'advisory' AND objsubid = 1 AND classid = 'weft_runs'::regclass::oid)
        THEN RAISE lock_not_available USING MESSAGE =
        'an older weft is writing to it; end that first'; END IF; END $$""",
        # `seq`: the number of the run's last record. `owner`: which claim it was.
        """CREATE TABLE weft_leases (run integer PRIMARY KEY REFERENCES weft_runs ON DELETE CASCADE,
        token bigint NOT NULL DEFAULT 1, seq bigint NOT NULL DEFAULT 0, owner text NOT NULL,
        holder text NOT NULL, expires timestamptz NOT NULL)""",
        """INSERT INTO weft_leases SELECT no, 1,
        coalesce((SELECT max(seq) FROM weft_batches WHERE run = no), 0), '', '', '-infinity'
        FROM weft_runs""",
        # Rows are updated often; free space in their pages keeps updates off the index.
        "ALTER TABLE weft_leases SET (fillfactor = 50)",
        # `sent`, `taken`: ids of the sender and receiver of a signal, so that neither repeats it.
        "ALTER TABLE weft_letters ADD COLUMN sent text UNIQUE",
        """ALTER TABLE weft_letters ALTER taken DROP DEFAULT,
        ALTER taken TYPE text USING CASE WHEN taken THEN 'format 1' ELSE '' END,
        ALTER taken SET DEFAULT ''""",
    ),
    # Records may be lists of fields (`weft.core.codec.classes`): an earlier weft cannot read them.
    (),
    # Rate limits: see `weft.durability.rates.window`.
    (
        "CREATE TABLE weft_rates (key text PRIMARY KEY, body text NOT NULL)",
        # Conversations: see `weft.core.ports.conversations`.
        """CREATE TABLE weft_messages (thread text NOT NULL, number integer NOT NULL,
        body text NOT NULL, key text NOT NULL, part integer NOT NULL,
        PRIMARY KEY (thread, number), UNIQUE (thread, key, part))""",
        """CREATE TABLE weft_summaries (thread text PRIMARY KEY, covers integer NOT NULL,
        body text NOT NULL)""",
    ),
    # The queue of runs and its schedules: see `weft.core.ports.queue`.
    (
        """CREATE TABLE weft_queue (run integer PRIMARY KEY REFERENCES weft_runs ON DELETE CASCADE,
        state text NOT NULL, attempts integer NOT NULL, reason text NOT NULL,
        queue text NOT NULL, version text NOT NULL, priority integer NOT NULL,
        due double precision NOT NULL, limit_key text NOT NULL, at_most integer,
        max_attempts integer NOT NULL)""",
        """CREATE INDEX ON weft_queue (priority DESC, run)
        WHERE state IN ('queued', 'running')""",
        "CREATE INDEX ON weft_queue (limit_key) WHERE state = 'running'",
        """CREATE TABLE weft_schedules (name text PRIMARY KEY, cron text NOT NULL,
        zone text NOT NULL, catch_up text NOT NULL, next double precision NOT NULL,
        header bytea NOT NULL, queue text NOT NULL, version text NOT NULL,
        priority integer NOT NULL, due double precision NOT NULL, limit_key text NOT NULL,
        at_most integer, max_attempts integer NOT NULL)""",
    ),
    # Workers, with their heartbeats.
    (
        """CREATE TABLE weft_workers (id text PRIMARY KEY, expires timestamptz NOT NULL,
        beat timestamptz NOT NULL, body text NOT NULL)""",
        "ALTER TABLE weft_workers SET (fillfactor = 50)",
    ),
)
"""The statements from version N, counted from 0, to N + 1. Append only."""


def prepare(db: Connection, where: str, migrations: Sequence[Sequence[LiteralString]]) -> None:
    """Create the tables, or migrate them. Raises: `StoreError` for those of a newer weft."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s, 0)", (OURS,))
        if db.execute("SELECT to_regclass('weft_version')").fetchone() == (None,):
            db.execute("CREATE TABLE weft_version (version integer NOT NULL)")
            db.execute("INSERT INTO weft_version VALUES (0)")
        version = int(one(db, "SELECT max(version) FROM weft_version"))
        if version > len(migrations):
            raise newer(where, version, len(migrations))
        for step in migrations[version:]:
            for statement in step:
                db.execute(statement)
        if version < len(migrations):
            db.execute("UPDATE weft_version SET version = %s", (len(migrations),))


def one(db: Connection, query: LiteralString, *parameters: object) -> Any:
    """The single value of a query's result; None without a row."""
    row = db.execute(query, parameters).fetchone()
    return None if row is None else row[0]


class QueryFn(Protocol):
    """Returns the rows of a statement."""

    def __call__(self, query: LiteralString, parameters: Sequence[object] = ()) -> Rows: ...


class PostgresTables(Tables):
    """The journal's tables, read with `ask`: in one transaction, or in one for each query."""

    def __init__(self, ask: QueryFn) -> None:
        super().__init__()
        self._ask = ask

    @classmethod
    def within(cls, db: Connection) -> PostgresTables:
        """The tables in the transaction of `db`."""
        return cls(partial(rows_of, db))

    def found(self, run: RunId) -> RunRow | None:
        query = "SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs WHERE id = %s"
        rows = self._ask(query, (run,))
        return RunRow(*rows[0]) if rows else None

    def rows(self, flow: str | None = None, limit: int | None = None) -> list[RunRow]:
        query = """SELECT no, id, flow, wall, ended_wall, part, status FROM weft_runs
        WHERE %s::text IS NULL OR flow = %s ORDER BY no DESC LIMIT %s"""
        return [RunRow(*row) for row in self._ask(query, (flow, flow, limit))]

    def sealed_header(self, row: RunRow) -> bytes | None:
        header: bytes | None = self._one("SELECT header FROM weft_runs WHERE no = %s", row.no)
        return header

    def asking(self, row: RunRow) -> list[NodeId]:
        query = "SELECT node FROM weft_asking WHERE run = %s ORDER BY no"
        return [NodeId(node) for (node,) in self._ask(query, (row.no,))]

    def last_seq(self, row: RunRow) -> int:
        return int(self._one("SELECT max(seq) FROM weft_batches WHERE run = %s", row.no) or 0)

    def page_of(self, row: RunRow, after: int) -> list[RecordBatch]:
        query = """SELECT seq, part, body FROM weft_batches WHERE run = %s AND seq > %s
        ORDER BY seq LIMIT %s"""
        batches = self._ask(query, (row.no, after, PAGE))
        return [RecordBatch(seq, part, body) for seq, part, body in batches]

    def fetch(self, digest: bytes) -> bytes | None:
        body: bytes | None = self._one("SELECT body FROM weft_blobs WHERE digest = %s", digest)
        return body

    def bodies(self) -> Iterable[tuple[bytes, bytes]]:
        query = "SELECT digest, body FROM weft_blobs"
        return [(digest, body) for digest, body in self._ask(query)]

    def holders(self, rows: Sequence[RunRow] = ()) -> dict[int, str]:  # noqa: ARG002 - all at once
        """The holders of leases that have not expired, by run."""
        query = "SELECT run, holder FROM weft_leases WHERE expires > clock_timestamp()"
        return dict(self._ask(query))

    def _one(self, query: LiteralString, *parameters: object) -> Any:
        rows = self._ask(query, parameters)
        return rows[0][0] if rows else None


def prune(connections: PostgresPool, gone: Sequence[RunRow], max_bytes: int | None) -> PruneResult:
    """Remove `gone`, then the oldest runs until the rest takes at most `max_bytes`.

    Claimed runs stay. Sizes are those of headers, records and values: the server frees pages later.
    Raises: `StoreError`.
    """
    tables = PostgresTables(connections.ask)
    before = _size(tables)
    removed = _remove(connections, gone)
    if max_bytes is not None:
        removed += _remove(connections, beyond(tables, max_bytes))
    connections.transact(_sweep)
    left = _size(tables)
    return PruneResult(tuple(row.id for row in removed), max(0, before - left), left)


def _remove(connections: PostgresPool, gone: Sequence[RunRow]) -> list[RunRow]:
    return [row for lot in lots(gone) for row in _remove_lot(connections, lot)]


def _remove_lot(connections: PostgresPool, gone: Sequence[RunRow]) -> list[RunRow]:
    """Remove a lot of runs. Returns those of `gone` that no longer exist."""
    numbers = [row.no for row in gone]
    query = """DELETE FROM weft_runs WHERE no IN (SELECT run FROM weft_leases
    WHERE run = ANY(%s) AND expires <= clock_timestamp() FOR UPDATE SKIP LOCKED)"""
    connections.ask(query, (numbers,))
    left = connections.ask("SELECT no FROM weft_runs WHERE no = ANY(%s)", (numbers,))
    return [row for row in gone if (row.no,) not in left]


def _sweep(db: Connection) -> None:
    reached = ReachableRecords(PostgresTables.within(db))
    reached.add_all()
    db.execute("LOCK TABLE weft_blobs IN SHARE ROW EXCLUSIVE MODE")
    reached.add_all()
    stored = {digest for (digest,) in db.execute("SELECT digest FROM weft_blobs")}
    unused = list(stored - reached.marks.digests)
    db.execute("DELETE FROM weft_blobs WHERE digest = ANY(%s)", (unused,))


def _size(tables: PostgresTables) -> int:
    reached = ReachableRecords(tables)
    reached.add_all()
    return reached.marks.size_bytes
