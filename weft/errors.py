"""The error tree, for users: `from weft.errors import ToolRaised`. See `weft.core.errors`."""

from weft.core.errors import *  # noqa: F403
from weft.core.errors import __all__ as __all__
