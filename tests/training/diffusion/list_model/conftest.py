from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:  # without the `local` extra there is nothing to test
    collect_ignore_glob = ["test_*.py"]
