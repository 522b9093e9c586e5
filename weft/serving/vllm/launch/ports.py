"""Ports for servers, reserved before the server starts."""

from __future__ import annotations

import errno
import socket
import sys

from weft.core.errors import StartError


class HeldPort:
    """A port that is bound but not listened on, so that no other program gets it by chance.

    On Linux a server that sets SO_REUSEADDR, as all common ones do, can still bind it and listen,
    repeatedly: the address stays valid across restarts. Elsewhere the port is only chosen, and
    another program may take it.

    `wanted` 0 lets the system choose. `port` is 0 until `hold`.
    """

    def __init__(self, host: str, wanted: int = 0) -> None:
        self.host = host
        self.port = 0
        self._wanted = wanted
        self._socket: socket.socket | None = None

    def hold(self) -> None:
        """Reserve the port. A repeated call may choose another one, unless `wanted` is set.

        Raises: `StartError` when it is taken, or when `host` is not an address of this machine.
        """
        self.close()
        self._socket = _bound(self.host, self._wanted)
        self.port = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self._socket.close()

    def close(self) -> None:
        """Release the port. Harmless when repeated."""
        if self._socket is not None:
            self._socket.close()

    def taken(self) -> bool:
        """Whether a server listens on the port."""
        try:
            with _socket(self.host) as other:
                other.bind((self.host, self.port))
                other.listen(1)
        except OSError:
            return True
        return False


def _socket(host: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _bound(host: str, port: int) -> socket.socket:
    made = _socket(host)
    try:
        made.bind((host, port))
        if port:
            made.listen(1)  # binding alone succeeds next to another such server
            made.close()
            made = _socket(host)
            made.bind((host, port))
    except OSError as error:
        made.close()
        raise _unusable(host, port, error) from error
    return made


def _unusable(host: str, port: int, error: OSError) -> StartError:
    if error.errno == errno.EADDRINUSE:
        hint = "give another --port, or leave it out and one is chosen"
        return StartError(f"port {port} of {host} is taken", stage_reached="port", hint=hint)
    if error.errno in (errno.EACCES, errno.EPERM):
        hint = "ports below 1024 are for the system: take a higher one"
        return StartError(f"port {port} may not be used", stage_reached="port", hint=hint)
    hint = "give an address of this machine, such as 127.0.0.1"
    text = f"cannot listen on {host}: {error.strerror or error}"
    return StartError(text, stage_reached="port", hint=hint)
