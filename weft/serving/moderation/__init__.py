"""Output moderation: a judge reads answers before they are shown."""

from weft.serving.moderation.judges import FunctionJudge, Judge, ModerationJudge
from weft.serving.moderation.model import ModeratedModel

__all__ = ["FunctionJudge", "Judge", "ModeratedModel", "ModerationJudge"]
