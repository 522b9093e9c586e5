"""Asks `/healthz` of the port in argv every 20 ms, from a process of its own.

Each answer is a line on stdout: its latency in milliseconds; a silent server is a line `inf` after
ten seconds. It ends when stdin is closed.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time

_EVERY_S = 0.02
_PATIENCE_S = 10.0


def main() -> None:
    """Watch until stdin ends."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.wait(_EVERY_S):
        print(_latency_ms(int(sys.argv[1])), flush=True)


def _latency_ms(port: int) -> float:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    except OSError:
        return float("inf")
    finally:
        connection.close()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
