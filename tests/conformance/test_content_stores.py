from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.content_store import ContentStoreConformance
from tests.postgres_server import PostgresServer, postgres_server
from tests.s3_server import S3Server, s3_server
from weft.core.ports import ContentStore
from weft.workflow.content import open_content_store


class TestFolderContentStore(ContentStoreConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "not" / "yet"

    def make(self, max_bytes: int = 1 << 20) -> ContentStore:
        return open_content_store(self.folder, max_bytes=max_bytes)

    def damage(self, digest: str, content: bytes) -> None:
        digits = digest.removeprefix("sha256:")
        (self.folder / "sha256" / digits[:2] / digits[2:]).write_bytes(content)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


class TestS3ContentStore(ContentStoreConformance):
    @pytest.fixture(autouse=True)
    def _bucket(self, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
        s3.use(monkeypatch)
        self.bucket = s3.bucket()

    def make(self, max_bytes: int = 1 << 20) -> ContentStore:
        return open_content_store(f"s3://{self.bucket}/weft/content", max_bytes=max_bytes)

    def damage(self, digest: str, content: bytes) -> None:
        from obstore.store import S3Store

        bucket = S3Store(self.bucket, client_options={"allow_http": True})
        bucket.put(f"weft/content/{digest.replace(':', '/')}", content)

    def test_large_content_goes_in_parts(self) -> None:
        content = bytes(range(256)) * (12 << 12)  # 12 MiB

        async def body(store: ContentStore) -> None:
            large = self.make(max_bytes=16 << 20)
            assert await large.get(await large.put(content)) == content

        self.run(body)


class TestPostgresContentStore(ContentStoreConformance):
    @pytest.fixture(autouse=True)
    def _database(self, postgres: PostgresServer) -> None:
        self.server, self.address = postgres, postgres.database()

    def make(self, max_bytes: int = 1 << 20) -> ContentStore:
        return open_content_store(self.address, max_bytes=max_bytes)

    def damage(self, digest: str, content: bytes) -> None:
        import psycopg

        with psycopg.connect(self.address) as db:
            key = bytes.fromhex(digest.removeprefix("sha256:"))
            query = "UPDATE weft_content SET body = %s WHERE digest = %s"
            assert db.execute(query, (content, key)).rowcount == 1

    def test_it_outlives_the_sessions_of_its_server(self) -> None:
        import psycopg

        async def body(store: ContentStore) -> None:
            digest = await store.put(b"kept")
            with psycopg.connect(self.address) as db:
                db.execute(
                    """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
                )
            assert await store.get(digest) == b"kept"

        self.run(body)

    def test_a_journal_and_content_share_a_database(self) -> None:
        from weft.workflow.runtime.journals import open_journal

        async def body(store: ContentStore) -> None:
            digest = await store.put(b"beside a journal")
            open_journal(self.address).close()
            assert await store.get(digest) == b"beside a journal"

        self.run(body)
