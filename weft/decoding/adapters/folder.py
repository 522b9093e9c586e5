"""Folders with an adapter of a causal model: which base they change, and what they are trained for.

Reads JSON files only. The weights are merged by `weft.decoding.network`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError
from weft.decoding.config_fields import CONFIG, ConfigFields

OWN: Final = "weft_adapter"
FORMAT: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

FindModel = Callable[[str], Path]
"""Locates the folder of a model by its name."""


@dataclass(frozen=True, slots=True)
class AdapterFolder:
    """A folder whose `file` changes the weights of the model in the folder `base`.

    `plan_form`: see `weft.core.ports.Capabilities`. `own`: its entry in config.json.
    """

    base: Path
    file: Path
    plan_form: str
    own: ConfigFields


def adapter_folder(path: Path, find: FindModel | None) -> AdapterFolder | None:
    """The adapter in a model folder; None for any other folder, also one without a sound config.

    Raises: `CapabilityError` naming the key that is wrong; what `find` raises.
    """
    try:
        config = ConfigFields.read(path / CONFIG)
    except CapabilityError:
        return None
    if OWN not in config:
        return None
    own = config.within(OWN)
    own.whole("format", FORMAT, FORMAT)
    base = base_of(path, own, find)
    if base is None:
        raise own.wrong("base", "no name of a model")
    return AdapterFolder(base, path / own.file("adapter"), own.text("plan_form", ""), own)


def base_of(path: Path, own: ConfigFields, find: FindModel | None) -> Path | None:
    """The base of an adapter folder; None for a folder with weights of its own.

    `base` is the name of a sibling folder, or of a model that `find` locates.

    Raises: `CapabilityError` where it is missing, and what `find` raises.
    """
    if "base" not in own:
        return None
    name = own.text("base")
    if not _NAME.fullmatch(name):
        raise own.wrong("base", "no name of a model")
    sibling = path.resolve().parent / name
    if (sibling / CONFIG).is_file():
        return sibling
    if find is None:
        raise own.wrong("base", "no model folder beside this one")
    return find(name)
