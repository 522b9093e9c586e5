"""One check in its own process: reads `[schema, value, pattern bytes]`, writes what is wrong.

Runs as a script next to `message.py`, without the rest of weft. A signal ends it after the seconds
of processor time in its argument. The first line of output is `fits` or `differs`; after `differs`
comes the reason, as far as time allows.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

_MAX_MEMORY = 2 * 1024**3
_SHORTEST_S = 0.001  # 0 would mean no limit


def main() -> None:
    """Check the value on stdin."""
    _bound_time(float(sys.argv[1]))
    _bound_memory()
    schema, value, pattern_bytes = json.loads(sys.stdin.buffer.read())
    options = RegexOptions(size_limit=pattern_bytes)
    validator = Draft202012Validator(
        schema, pattern_options=options, offline=True, validate_formats=False
    )
    if validator.is_valid(value):
        print("fits", flush=True)
        return
    print("differs", flush=True)
    try:
        validator.validate(value)
    except ValidationError as error:
        sys.path.append(str(Path(__file__).parent))
        from message import error_text  # type: ignore[import-not-found] # its neighbour

        print(json.dumps(error_text(error)), flush=True)


def _bound_time(seconds: float) -> None:
    if hasattr(signal, "setitimer"):  # not on Windows, where the parent process ends it
        signal.setitimer(signal.ITIMER_PROF, max(seconds, _SHORTEST_S))


def _bound_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))


if __name__ == "__main__":
    main()
