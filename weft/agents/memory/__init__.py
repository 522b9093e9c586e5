"""Long-term memory: short texts that outlive runs, found again by BM25 or by embedding."""

from weft.agents.memory.memory import Memory
from weft.agents.memory.memory_file import MemoryHit
from weft.agents.memory.tools import MemoryTools
from weft.agents.memory.vectors import Embedder

__all__ = ["Embedder", "Memory", "MemoryHit", "MemoryTools"]
