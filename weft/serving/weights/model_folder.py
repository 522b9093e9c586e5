"""The user's models folder, the models that come with weft, and finding a model by name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from weft.core.errors import CapabilityError, ModelNotFound
from weft.core.extras import advice
from weft.decoding.shipped_weights import shipped_weights
from weft.serving.weights.catalogue import CATALOGUE, sha256_of


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """A model that comes with weft; `size` in bytes. `diffuses`: a diffusion model. `plans`: an
    adapter that was trained to write plans.
    """

    name: str
    path: Path
    size: int
    diffuses: bool
    plans: bool


def shipped_models() -> list[ShippedModel]:
    """All shipped models, by name; none where `weft-weights` is not installed."""
    from weft.decoding.diffusion.models import is_diffusion

    return [
        ShippedModel(
            name,
            path,
            sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
            is_diffusion(path),
            path.parent.name == "planner",
        )
        for name, path in shipped().items()
    ]


def shipped() -> dict[str, Path]:
    """The folders of the shipped models, by name; empty where `weft-weights` is not installed."""
    try:
        folders = [shipped_weights("diffusion"), shipped_weights("planner")]
    except CapabilityError:
        return {}
    found = sorted(path for folder in folders if folder.is_dir() for path in folder.iterdir())
    return {path.name: path for path in found if (path / "config.json").is_file()}


def missing_weights() -> str:
    """What to do where `weft-weights` is not installed; empty where it is."""
    try:
        shipped_weights("diffusion")
    except CapabilityError as missing:
        return f"{missing.message}: {missing.hint}"
    return ""


MANIFEST = "weft-model.json"
_MADE_FROM = {"weft-planner": "smollm2-135m-instruct"}
"""Models of `weft-weights` that users meet as defaults, and the model whose weights they need."""
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A complete model in the cache. `size` in bytes; `files` maps a name to (size, SHA-256)."""

    name: str
    path: Path
    source: str
    licence: str
    files: Mapping[str, tuple[int, str]]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(size for size, _ in self.files.values())

    def complete(self) -> bool:
        """Whether every file exists in its full size. Fast: reads no content."""
        return all(
            (self.path / name).is_file() and (self.path / name).stat().st_size == size
            for name, (size, _) in self.files.items()
        )

    def intact(self) -> bool:
        """Whether every file still has its installed content. Reads all files."""
        return self.complete() and all(
            sha256_of(self.path / name) == digest for name, (_, digest) in self.files.items()
        )


def models_folder(home: Path | None = None) -> Path:
    """The models folder: under `home`, else `WEFT_HOME`, else the user's cache folder."""
    root = home or os.environ.get("WEFT_HOME") or user_cache_path("weft")
    return Path(root).expanduser() / "models"


def write_manifest(folder: Path, *, name: str, source: str, licence: str) -> None:
    """Write the manifest of a complete model folder, with the hashes of its files."""
    files = {
        path.name: {"size": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.iterdir())
    }
    manifest = {
        "format": _FORMAT,
        "name": name,
        "source": source,
        "licence": licence,
        "files": files,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> InstalledModel | None:
    """The manifest in `folder`; None where there is none or it cannot be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        if manifest["format"] != _FORMAT or any(Path(name).name != name for name in files):
            return None
        files = {name: (int(f["size"]), str(f["sha256"])) for name, f in files.items()}
        return InstalledModel(
            manifest["name"], folder, manifest["source"], manifest["licence"], files
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def installed(*, home: Path | None = None) -> list[InstalledModel]:
    """The complete models of the cache, by name."""
    folder = models_folder(home)
    if not folder.is_dir():
        return []
    found = (read_manifest(path) for path in sorted(folder.iterdir()) if path.is_dir())
    return [
        model for model in found if model and model.path.name == model.name and model.complete()
    ]


def known_models(*, home: Path | None = None) -> tuple[str, ...]:
    """The names of models that are installed, shipped or in the catalogue, sorted."""
    here = [model.name for model in installed(home=home)]
    return tuple(sorted({*here, *CATALOGUE, *shipped()}))


def locate(name_or_path: str | os.PathLike[str], *, home: Path | None = None) -> Path:
    """The folder of an installed model, of any folder with a `config.json`, or of a shipped model.

    Raises: `ModelNotFound` with the command that fetches it, or the known names.
    """
    name = os.fspath(name_or_path)
    models = {model.name: model.path for model in installed(home=home)}
    if name in models:
        return models[name]
    path = Path(name).expanduser()
    if (path / "config.json").is_file():
        return path.resolve()
    own = shipped()
    if name in own:
        return own[name]
    pulled = _MADE_FROM.get(name, name)
    if pulled in CATALOGUE:
        first = f"{advice('weft_weights')}, then " if missing_weights() else ""
        raise ModelNotFound(
            f"the weights of {name} are not on this machine",
            hint=f"{first}weft model pull {pulled}",
        )
    names = ", ".join(known_models(home=home))
    remark = missing_weights()
    raise ModelNotFound(
        f"no model {name!r}, and no folder of that name with a config.json",
        hint=f"models by name: {names}" + (f"; {remark}" if remark else ""),
    )
