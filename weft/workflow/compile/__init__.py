"""Compilation of documents to engine graphs: one module per kind of node. Runs nothing."""

from weft.workflow.compile.compiler import Compiler
from weft.workflow.compile.policy import NameBindings
from weft.workflow.compile.services import Services

__all__ = ["Compiler", "NameBindings", "Services"]
