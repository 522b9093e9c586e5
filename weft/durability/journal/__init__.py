"""Journals: what happened in every run, kept while it happens, each value once."""

from weft.core.codec import Opaque, decode, decode_all, encode, encode_all, opaque_in, register
from weft.durability.journal.sqlite import SqliteJournal, set_aside

__all__ = [
    "Opaque",
    "SqliteJournal",
    "decode",
    "decode_all",
    "encode",
    "encode_all",
    "opaque_in",
    "register",
    "set_aside",
]
