"""That the decoder which a node names is there, and that its model can be asked for it."""

from __future__ import annotations

from weft.core.errors import BuildError
from weft.workflow.decoders import decoder_of
from weft.workflow.document.leaves import ModelNode
from weft.workflow.source import Path
from weft.workflow.unit import Unit


def check_decode(unit: Unit, step: ModelNode, path: Path) -> None:
    """Check the decoder of the node at `path`, if it names one. Raises: `BuildError`."""
    try:
        decoder_of(unit, step)
    except BuildError as error:
        unit.fail(error, (*path, "decode"))
