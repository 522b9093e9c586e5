"""Keys from environment variables, placed in requests as the document declares.

Reads a variable when a call needs it, and stores no key in anything that is shown.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from weft.agents.openapi.document import ApiDocument
from weft.agents.openapi.parameter import header_problem
from weft.agents.untrusted import Secrets, printable
from weft.core.errors import BuildError

_BEARER: Final = {"type": "http", "scheme": "bearer"}


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The credentials of a request; `query` is already encoded."""

    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: tuple[str, ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    secrets: Secrets = field(default_factory=lambda: Secrets(()))


@dataclass(frozen=True, slots=True)
class SecurityBinding:
    """A security scheme and the variable with its key."""

    scheme: Mapping[str, Any]
    variable: str


def bind_security(
    document: ApiDocument, security: Any, auth_env: str | Mapping[str, str] | None
) -> tuple[SecurityBinding, ...]:
    """The bindings for one of the requirements in `security`.

    Empty without keys: the server may then refuse the call.
    Raises: `BuildError` when the given keys meet none of the requirements.
    """
    if auth_env is None:
        return ()
    components = document.resolved(document.root.get("components", {}), "`components`")
    schemes = document.resolved(components.get("securitySchemes", {}), "`securitySchemes`")
    if not schemes and isinstance(auth_env, str):
        return (SecurityBinding(_BEARER, auth_env),)
    wanted = security if isinstance(security, list) else []
    requirements = [document.resolved(each, "a security requirement") for each in wanted]
    if not requirements:
        return ()
    for requirement in requirements:
        found = _variables(list(requirement), auth_env)
        if found is not None:
            return tuple(
                SecurityBinding(_scheme(document, schemes, name), variable)
                for name, variable in found.items()
            )
    offered = sorted({name for each in requirements for name in each})
    raise BuildError(
        f"none of the keys in `auth_env` is for {printable(', '.join(offered), 100)}",
        hint="write auth_env: {scheme: VARIABLE}",
    )


def _variables(names: list[str], auth_env: str | Mapping[str, str]) -> Mapping[str, str] | None:
    """A variable for each scheme, or None when a scheme has none."""
    if isinstance(auth_env, str):
        return dict.fromkeys(names, auth_env) if len(names) <= 1 else None
    return {n: auth_env[n] for n in names} if all(n in auth_env for n in names) else None


def _scheme(document: ApiDocument, schemes: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    scheme = document.resolved(schemes.get(name), f"the security scheme {printable(name, 60)}")
    kind = scheme.get("type")
    if kind == "http" and str(scheme.get("scheme")).lower() in ("bearer", "basic"):
        return scheme
    if kind in ("oauth2", "openIdConnect"):
        return _BEARER
    if kind == "apiKey" and scheme.get("in") in ("header", "query", "cookie"):
        key = scheme.get("name")
        if isinstance(key, str) and key and (scheme["in"] != "header" or not header_problem(key)):
            return scheme
    shown = printable(str(dict(scheme)), 200)
    raise BuildError(
        f"the security scheme {printable(name, 60)} cannot be used: {shown}",
        hint="weft sends API keys, bearer tokens and basic credentials",
    )


def read_credentials(bindings: tuple[SecurityBinding, ...]) -> RequestCredentials:
    """The keys, read now. Raises: `BuildError` when a variable is not set."""
    secrets = Secrets([binding.variable for binding in bindings])
    headers: dict[str, str] = {}
    cookies: list[str] = []
    query: list[tuple[str, str]] = []
    for binding in bindings:
        key, scheme = secrets[binding.variable], binding.scheme
        _check(binding.variable, key)
        if scheme["type"] == "http":
            headers["Authorization"] = _authorization(str(scheme["scheme"]).lower(), key)
        elif scheme["in"] == "header":
            headers[scheme["name"]] = key
        elif scheme["in"] == "cookie":
            cookies.append(f"{quote(scheme['name'], safe='')}={quote(key, safe='')}")
        else:
            query.append((quote(scheme["name"], safe=""), quote(key, safe="")))
    return RequestCredentials(headers, tuple(cookies), tuple(query), secrets)


def _authorization(scheme: str, key: str) -> str:
    if scheme == "basic":
        return f"Basic {base64.b64encode(key.encode()).decode()}"
    return key if key.startswith("Bearer ") else f"Bearer {key}"


def _check(variable: str, key: str) -> None:
    if not key.isascii() or not key.isprintable():
        raise BuildError(
            f"the environment variable {variable} holds what no header can",
            hint="is there a line break in it?",
        )
