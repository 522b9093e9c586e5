"""Keeps stdout for one document, whatever a workflow's tools print."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def stdout_reserved() -> Iterator[None]:
    """While open, everything written to stdout goes to stderr: prints, C code, child processes."""
    try:
        out, err = sys.stdout.fileno(), sys.stderr.fileno()
    except (OSError, io.UnsupportedOperation):  # not real files: under a test runner
        with redirect_stdout(sys.stderr):
            yield
        return
    sys.stdout.flush()
    kept = os.dup(out)
    os.dup2(err, out)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, out)
        os.close(kept)
