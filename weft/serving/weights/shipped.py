"""Models so small that they come with weft itself: its own diffusion models. Reads no weights."""

from __future__ import annotations

from pathlib import Path

from weft.decoding import diffusion


def shipped() -> dict[str, Path]:
    """Their folders by name."""
    folder = Path(diffusion.__file__).parent / "weights"
    if not folder.is_dir():
        return {}
    return {
        path.name: path for path in sorted(folder.iterdir()) if (path / "config.json").is_file()
    }
