"""Addresses of content stores, and that no credential leaves through an error or a log."""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.s3_server import ACCESS_KEY, SECRET_KEY, s3_server, set_environment
from weft.core.ports.content import ContentStore, digest_of_content
from weft.errors import StoreError
from weft.workflow.content import open_content_store

TOKEN = "s3ss10n-token-for-tests"
SECRETS = (ACCESS_KEY, SECRET_KEY, TOKEN, "hunter2")


def texts_of(error: BaseException) -> str:
    """All that a log of the error could have: the chain of exceptions as well."""
    chain = [error]
    while (last := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(last)
    shown = "".join(traceback.format_exception(error))
    return shown + "".join(f"{each!r} {each}" for each in chain)


def check_no_secret(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    text = texts_of(error) + caplog.text
    assert not [secret for secret in SECRETS if secret in text]


def test_a_path_is_a_folder(tmp_path: Path) -> None:
    for address in (tmp_path / "a", str(tmp_path / "b")):
        asyncio.run(open_content_store(address).put(b"content"))
        assert Path(address, "sha256").is_dir()


def test_without_an_address_it_is_that_of_the_environment_or_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WEFT_CONTENT", raising=False)
    asyncio.run(open_content_store().put(b"content"))
    assert (tmp_path / "home" / "content" / "sha256").is_dir()
    monkeypatch.setenv("WEFT_CONTENT", str(tmp_path / "named"))
    asyncio.run(open_content_store().put(b"content"))
    assert (tmp_path / "named" / "sha256").is_dir()


@pytest.mark.parametrize(
    "address",
    [
        "http://user:hunter2@host/x",
        "hunter2://host/x",
        "file:///tmp/x",
        "s3://",
        "s3:///prefix",
        "s3://user:hunter2@bucket/prefix",
        "s3://Bucket/prefix",
        "s3://bucket/../other",
        "s3://bucket/a//b",
        "s3://bucket/a b",
        "s3://bucket/prefix?secret=hunter2",
        "s3://bucket/prefix#hunter2",
        "postgresql://user:hunter2@host/name",
        "postgresql://host/name?password=hunter2",
        "postgres://[hunter2/name",
        "postgresql://host/name?hunter2",
    ],
)
def test_a_wrong_address_is_refused_and_not_quoted(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    needs = "obstore" if address.startswith("s3") else "psycopg"
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StoreError) as caught:
        open_content_store(address)
    assert caught.value.hint
    check_no_secret(caught.value, caplog)


class Echo(BaseHTTPRequestHandler):
    """Answers a request with its own credentials, as servers do where a signature is wrong."""

    status = 403

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = f"<Error><Code>No</Code><Message>{self.headers} {SECRET_KEY}</Message></Error>"
        self.send_response(self.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_PUT(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *args: object) -> None:  # type: ignore[override]
        """Nothing goes to the standard error of the tests."""


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Echo]]:
    pytest.importorskip("obstore", reason="obstore is not installed (extra `s3`)")

    class Handler(Echo):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    set_environment(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    yield Handler
    server.shutdown()
    server.server_close()
    thread.join()


def failure_of(store: ContentStore, call: str) -> StoreError:
    async def main() -> object:
        if call == "put":
            return await store.put(b"content")
        ask = store.get if call == "get" else store.has
        return await ask(digest_of_content(b"content"))

    with pytest.raises(StoreError) as caught:
        asyncio.run(main())
    return caught.value


@pytest.mark.parametrize("call", ["put", "get", "has"])
@pytest.mark.parametrize(
    ("status", "message", "retryable"),
    [
        (401, "refuses these credentials", False),
        (403, "refuses these credentials", False),
        (400, "answers with status 400", False),
    ],
)
def test_a_server_that_quotes_credentials_is_not_quoted(
    echo: type[Echo],
    caplog: pytest.LogCaptureFixture,
    call: str,
    status: int,
    message: str,
    retryable: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    echo.status = status
    error = failure_of(open_content_store("s3://bucket/prefix"), call)
    assert message in error.message
    assert "s3://bucket/prefix" in error.message
    assert error.retryable is retryable
    check_no_secret(error, caplog)


def test_a_missing_bucket_is_not_missing_content(monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server() as server:
        server.use(monkeypatch)
        for call in ("put", "get"):
            error = failure_of(open_content_store("s3://no-such-bucket/x"), call)
            assert type(error) is StoreError
            assert "there is no such bucket" in error.message


def test_a_server_that_is_down_is_worth_another_try(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (extra `s3`)")
    caplog.set_level(logging.DEBUG)
    set_environment(monkeypatch, "http://127.0.0.1:9")
    error = failure_of(open_content_store("s3://bucket/prefix"), "has")
    assert error.retryable
    assert "cannot be reached" in error.message
    check_no_secret(error, caplog)


def test_a_database_that_is_down_says_so_without_its_password(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    pytest.importorskip("psycopg_pool", reason="psycopg is not installed (extra `postgres`)")
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    caplog.set_level(logging.DEBUG)
    error = failure_of(open_content_store(f"postgresql:///weft?host={tmp_path}&user=weft"), "get")
    assert error.retryable
    assert "cannot be reached" in error.message
    check_no_secret(error, caplog)
