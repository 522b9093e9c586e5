"""The formats of JSON Schema that are regular, as expressions. Others only annotate."""

from __future__ import annotations

from typing import Final

_DATE: Final = (
    r"[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_TIME: Final = (
    r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
_BYTE: Final = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?"

FORMATS: Final = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
    "uuid": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    "email": f"^[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@{_LABEL}(\\.{_LABEL})+$",
    "ipv4": f"^{_BYTE}(\\.{_BYTE}){{3}}$",
    "hostname": f"^{_LABEL}(\\.{_LABEL})*$",
}
