"""Content parts of messages: texts, and media with their bytes.

A value of media is frozen and equal by content. To templates, schemas and JSON it is a mapping of
its kind, type, size and digest: bytes appear only in requests to a model, and in a journal, which
stores them once for each content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from weft.core.errors import InputError

LARGEST_BYTES: Final = 20 * 1024 * 1024
"""The largest content of one part."""
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_FORMAT_AT: Final = 8  # of a RIFF file, after its size
_FIELDS: Final = ("kind", "media_type", "name", "bytes", "sha256")


def media_type_of(data: bytes) -> str:
    """The media type that the first bytes tell; `text/plain` for UTF-8 text."""
    if data[:4] == b"RIFF" and (found := _RIFF.get(data[_FORMAT_AT : _FORMAT_AT + 4])):
        return found
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    try:
        data.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "application/octet-stream" if b"\0" in data else "text/plain"


@dataclass(frozen=True, slots=True)
class Media(Mapping[str, Any]):
    """Bytes of one media type. Make it with `from_file` or `from_bytes`.

    `media_type` is found in the bytes if it is empty. Raises: `InputError` for bytes that are
    empty, larger than 20 MiB, or of another type than the class or `media_type` says.
    """

    data: bytes = field(repr=False)
    media_type: str = ""
    name: str = ""

    kind: ClassVar[str] = "media"
    prefix: ClassVar[str] = ""
    """What the media types of the class begin with."""

    def __post_init__(self) -> None:
        what = f"the {self.kind} {self.name!r}" if self.name else f"the {self.kind}"
        if not self.data:
            raise InputError(f"{what} has no bytes", hint=f"{type(self).__name__}.from_file(path)")
        if len(self.data) > LARGEST_BYTES:
            raise InputError(
                f"{what} has {len(self.data):,} bytes", hint=f"the most is {LARGEST_BYTES:,}"
            )
        found = media_type_of(self.data)
        if not found.startswith(self.prefix):
            raise InputError(
                f"{what} is {found} by its bytes", hint=f"{self.kind} takes {self.prefix}..."
            )
        given = self.media_type
        if not given:
            object.__setattr__(self, "media_type", found)
        elif given != found and (self.prefix or _is_known(given)):
            raise InputError(f"{what} is {found} by its bytes, not {given}", hint="leave it out")

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str = "") -> Self:
        """The value of these bytes. Raises: `InputError`."""
        return cls(data, name=name)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """The value of a file, named after it. Raises: `InputError`."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(LARGEST_BYTES + 1)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InputError(f"the file {path} cannot be read: {reason}") from error
        return cls(data, name=Path(path).name)

    @property
    def sha256(self) -> str:
        """The digest of the bytes, in hexadecimal."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def tokens(self) -> int:
        """A rough estimate of the tokens that a model reads for it."""
        return _TOKENS.get(self.kind, len(self.data) // 4)

    def __getitem__(self, key: str) -> Any:
        match key:
            case "bytes":
                return len(self.data)
            case "kind" | "media_type" | "name" | "sha256":
                return getattr(self, key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(_FIELDS)

    def __len__(self) -> int:
        return len(_FIELDS)

    def __str__(self) -> str:
        return f"[{self.kind} {self.media_type}, {len(self.data):,} bytes, {self.sha256[:12]}]"

    __repr__ = __str__

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of the mapping that stands for a value."""
        return {
            "type": "object",
            "properties": {"kind": {"const": cls.kind}},
            "required": ["kind", "media_type", "sha256"],
        }

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> dict[str, Any]:
        return {"type": "is-instance", "cls": cls}

    @classmethod
    def __get_pydantic_json_schema__(cls, _core: object, _handler: object) -> dict[str, Any]:
        return cls.json_schema()


def _is_known(media_type: str) -> bool:
    known = {found for _, found in _SIGNATURES} | set(_RIFF.values())
    return media_type in known


_TOKENS: Final = {"image": 1024, "audio": 1024}


@dataclass(frozen=True, slots=True, repr=False)
class Image(Media):
    """An image: PNG, JPEG, GIF, WebP or BMP."""

    kind: ClassVar[str] = "image"
    prefix: ClassVar[str] = "image/"


@dataclass(frozen=True, slots=True, repr=False)
class Audio(Media):
    """Sound: WAV, MP3, FLAC or Ogg."""

    kind: ClassVar[str] = "audio"
    prefix: ClassVar[str] = "audio/"


@dataclass(frozen=True, slots=True, repr=False)
class File(Media):
    """Any other file, such as a PDF or a text."""

    kind: ClassVar[str] = "file"


MEDIA: Final[Mapping[str, type[Media]]] = {"image": Image, "audio": Audio, "file": File}
"""The classes by their kinds."""
ContentPart = str | Image | Audio | File
"""A part of a message: a text, or media."""
