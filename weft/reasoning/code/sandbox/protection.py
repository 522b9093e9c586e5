"""What a sandbox protects from. A protection that cannot be had is a refusal, unless allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from weft.core.errors import SandboxError

Protection = Literal["processes", "network", "files", "disk", "calls", "memory"]
PROTECTIONS: Final[Mapping[Protection, str]] = {
    "processes": "sees, signals and outlives no process; their number is bounded",
    "network": "makes no socket and has no network",
    "files": "sees what it needs to run, read only, and its own directory",
    "disk": "its directory is bounded",
    "calls": "cannot ask the kernel for what programs do not need",
    "memory": "its processes together are bounded, not only each of them",
}
"""Each protection, and what holds of a program with it."""
_ADVICE: Final = (
    "run where unprivileged user namespaces are enabled, or as root with CAP_SYS_ADMIN (docker: "
    "--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined); "
    "or, for programs that you trust, "
)


def checked_protections(names: Iterable[str]) -> tuple[Protection, ...]:
    """`names` as protections. Raises: `SandboxError` for a name that is none."""
    known = get_args(Protection)
    for name in names:
        if name not in known:
            hint = f"there are: {', '.join(known)}"
            raise SandboxError(f"there is no protection {name!r}", hint=hint)
    return tuple(name for name in known if name in names)


def refusal(missing: Mapping[Protection, str]) -> SandboxError:
    """Why programs are not run here."""
    reasons = "; ".join(f"{name}: {why}" for name, why in missing.items())
    names = ", ".join(repr(name) for name in missing)
    hint = f"{_ADVICE}say allow=({names},)"
    return SandboxError(f"this system cannot protect from programs ({reasons})", hint=hint)
