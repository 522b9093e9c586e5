"""What the workflows of this folder call."""

from pathlib import Path

import weft

HERE = Path(__file__).parent


@weft.tool
def read_texts(folder: str) -> dict[str, str]:
    """The texts of a folder beside this file, by the names of their files.

    Args:
        folder: its name
    """
    found = (HERE / folder).resolve()
    if not found.is_relative_to(HERE):
        raise ValueError(f"{folder!r} is not a folder beside this file")
    return {path.name: path.read_text("utf-8") for path in sorted(found.glob("*.txt"))}
