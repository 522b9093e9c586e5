"""References inside a schema: `#` and JSON pointers. Others are never followed."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote


def reference_target(reference: str, root: object) -> object:
    """The part of `root` that a reference leads to; None when it leads nowhere."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    for step in reference.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(root, list):
            root = root[int(name)] if name.isdecimal() and int(name) < len(root) else None
        else:
            root = root.get(name) if isinstance(root, Mapping) else None
        if root is None:
            return None
    return root if isinstance(root, (Mapping, bool)) else None
