"""A bank in a file of lines. Its calls have the key of the call, so that none counts twice."""

from __future__ import annotations

import json
from pathlib import Path

import weft
from weft.errors import ToolRaised


def _book(bank: str, account: str, amount: int) -> str:
    key, file = weft.idempotency_key(), Path(bank)
    lines = file.read_text().splitlines() if file.exists() else []
    if not any(json.loads(line)["key"] == key for line in lines):
        with file.open("a") as out:
            out.write(json.dumps({"key": key, "account": account, "amount": amount}) + "\n")
    return f"{account}: {amount:+}"


@weft.tool(effect="idempotent")
def withdraw(bank: str, account: str, amount: int) -> str:
    """Take money from an account."""
    if amount > 1000:
        raise ValueError(f"{account} does not have {amount}")
    return _book(bank, account, -amount)


@weft.tool(effect="idempotent")
def deposit(bank: str, account: str, amount: int) -> str:
    """Put money into an account; an unknown one is an error that no retry mends."""
    if account == "unknown":
        raise ValueError("there is no such account")
    outages = Path(f"{bank}.outages")
    if outages.exists() and (left := outages.read_text()):
        outages.write_text(left[1:])
        raise ToolRaised("the bank is down", retryable=True)
    return _book(bank, account, amount)


@weft.tool(effect="idempotent")
def refund(bank: str, account: str, amount: int) -> str:
    """Put money back."""
    return _book(bank, account, amount)
