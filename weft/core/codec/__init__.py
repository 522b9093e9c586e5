"""Records and their values as JSON text and back, exactly; foreign objects become `Opaque`."""

from weft.core.codec.classes import Opaque, opaque_in, register
from weft.core.codec.encoder import encode, encode_all
from weft.core.codec.reader import decode, decode_all
from weft.core.codec.sink import WrittenLists

__all__ = [
    "Opaque",
    "WrittenLists",
    "decode",
    "decode_all",
    "encode",
    "encode_all",
    "opaque_in",
    "register",
]
