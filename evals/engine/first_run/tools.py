"""The tool of the workflow file."""

import weft


@weft.tool
async def step(value: int) -> int:
    """Do nothing."""
    return value + 1
