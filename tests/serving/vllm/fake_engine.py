"""An engine that loads nothing: `python fake_engine.py PORT`, told by the environment what to do.

It answers /health and /v1/models and has a worker, as stubborn as a process can be: in a session of
its own, adopted by nobody, deaf to SIGTERM.

FAKE_START_S      seconds until it listens
FAKE_NEVER        it never listens
FAKE_LOADED       it says that its weights are loaded; with FAKE_NEVER as ranks without a server do
FAKE_ERROR        it prints this and ends with status 1
FAKE_GATE         a file; it does not listen before this exists
FAKE_CRASH_S      it dies so long after it was first found healthy; FAKE_CRASHES: only in so many
FAKE_FOLDER       lives, which it counts in this folder
FAKE_DEAF         it ignores SIGTERM
FAKE_HANG         a file; while it exists /health gets no answer

A request of /slow leaves the file `asked` in that folder and takes until there is one `answer`;
SIGTERM leaves `ending` and waits for the request.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WORKER = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "print(os.getpid(), flush=True)\n"
    "os.close(1)\n"
    "time.sleep(600)\n"
)
SAID = {name[5:].lower(): value for name, value in os.environ.items() if name.startswith("FAKE_")}


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def left(name: str) -> None:
    Path(SAID["folder"], name).touch()


class Handler(BaseHTTPRequestHandler):
    worker = 0
    crashes = told = False
    busy = threading.Lock()

    def do_GET(self) -> None:
        hang = SAID.get("hang")
        while hang and Path(hang).exists():
            time.sleep(0.05)
        if self.path == "/slow":
            with self.busy:
                left("asked")
                while not Path(SAID["folder"], "answer").exists():
                    time.sleep(0.01)
                self.tell()
            return
        self.tell()
        if "crash_s" in SAID and self.path == "/health" and not self.told and self.crashes:
            Handler.told = True
            threading.Timer(float(SAID["crash_s"]), lambda: os._exit(9)).start()

    def tell(self) -> None:
        ok = lives(self.worker)
        self.answer(200 if ok else 503, {"data": [{"id": "fake"}], "worker": self.worker})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, {"choices": [{"message": {"content": "Hello"}}]})

    def answer(self, status: int, said: dict[str, object]) -> None:
        body = json.dumps(said | {"pid": os.getpid()})
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: object) -> None:
        pass


def crashes() -> bool:
    """Whether this life shall end in a crash; counts the lives."""
    path = Path(SAID.get("folder", "."), "lives")
    with path.open("a") as file:
        file.write(".")
    return path.stat().st_size <= int(SAID.get("crashes", "1000"))


def load() -> None:
    """What is done and said before it listens."""
    print("INFO Starting to load model fake", flush=True)
    if "loaded" in SAID:
        print("INFO Loading weights took 0.10 seconds", flush=True)
    while "never" in SAID:
        time.sleep(0.1)
    while "gate" in SAID and not Path(SAID["gate"]).exists():
        time.sleep(0.01)
    time.sleep(float(SAID.get("start_s", "0")))


def main() -> None:
    port = int(sys.argv[1])
    if "deaf" in SAID:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("INFO vLLM version 0.32.0", flush=True)
    command = [sys.executable, "-I", "-S", "-c", WORKER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        Handler.worker = int(process.stdout.readline())
    if "error" in SAID:
        sys.exit(SAID["error"])
    load()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def server_bind(self) -> None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)

    try:
        server = Server(("127.0.0.1", port), Handler)
    except OSError as error:
        sys.exit(f"OSError: {error}")

    def end(*_: object) -> None:
        if "folder" in SAID:
            left("ending")
        with Handler.busy:
            time.sleep(0.05)
        os._exit(0)

    if "deaf" not in SAID:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end).start())
    Handler.crashes = "crash_s" in SAID and crashes()
    print("INFO Application startup complete.", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
