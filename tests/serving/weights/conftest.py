from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:  # without the `local` extra nothing can be converted
    collect_ignore_glob = ["test_convert.py", "test_hub.py", "test_wheel.py"]
