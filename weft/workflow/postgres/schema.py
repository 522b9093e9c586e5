"""The tables of a journal in PostgreSQL, their version, and the way from each to the next.

Does not know what is in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from weft.engine.journal.refusals import newer
from weft.workflow.postgres.connections import Connection

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
        # Rows are updated often; room beside them keeps that off the index.
        "ALTER TABLE weft_leases SET (fillfactor = 50)",
        # `sent` and `taken`: what sent and what took the letter, so that neither does it twice.
        "ALTER TABLE weft_letters ADD COLUMN sent text UNIQUE",
        """ALTER TABLE weft_letters ALTER taken DROP DEFAULT,
        ALTER taken TYPE text USING CASE WHEN taken THEN 'format 1' ELSE '' END,
        ALTER taken SET DEFAULT ''""",
    ),
    # Records may be lists of fields (`weft.core.codec.layouts`): an earlier weft cannot read them.
    (),
)
"""The statements that lead from version N, counted from 0, to N + 1. Only ever add to it."""


def prepare(db: Connection, where: str, migrations: Sequence[Sequence[LiteralString]]) -> None:
    """Make the tables, or bring them up to date. Raises: `StoreError` for those of a newer weft."""
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
    """The one value that a query gives; None when it gives no row."""
    row = db.execute(query, parameters).fetchone()
    return None if row is None else row[0]
