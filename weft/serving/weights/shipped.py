"""Models so small that they come with weft itself: its own diffusion models. Reads no weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weft.decoding import diffusion


@dataclass(frozen=True, slots=True)
class ShippedModel:
    """`size` in bytes. `diffuses`: it fills in; else it writes on, token by token."""

    name: str
    path: Path
    size: int
    diffuses: bool


def shipped_models() -> list[ShippedModel]:
    """All of them, by name."""
    from weft.decoding.diffusion.models import is_diffusion

    return [
        ShippedModel(
            name,
            path,
            sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
            is_diffusion(path),
        )
        for name, path in shipped().items()
    ]


def shipped() -> dict[str, Path]:
    """Their folders by name."""
    folder = Path(diffusion.__file__).parent / "weights"
    if not folder.is_dir():
        return {}
    return {
        path.name: path for path in sorted(folder.iterdir()) if (path / "config.json").is_file()
    }
