"""Documents to engine graphs: one module per kind of node. Runs nothing itself."""

from weft.workflow.compile.compiler import Compiler
from weft.workflow.compile.names import Names
from weft.workflow.compile.services import Services

__all__ = ["Compiler", "Names", "Services"]
