"""What models write, read with patience: lists, labelled lines, JSON with talk around it.

Knows no prompt and no model. What cannot be read is said, never guessed and never run.
"""

from weft.reasoning.reading.fence import fenced
from weft.reasoning.reading.labels import labelled
from weft.reasoning.reading.objects import object_with
from weft.reasoning.reading.points import Points, read_points

__all__ = ["Points", "fenced", "labelled", "object_with", "read_points"]
