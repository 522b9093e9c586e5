"""What tools say of their effects, and the keys that idempotent ones get."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

import weft
from weft.agents.tools import Isolation, Tool, Toolbox, tool
from weft.core.call_context import current_key, keyed
from weft.core.errors import BuildError, NotDone, ToolArgumentError
from weft.core.values import Effect, ToolSpec


def pay(amount: int, idempotency_key: str = "none") -> str:
    """Pay.

    Args:
        amount: how much
        idempotency_key: tells payments apart
    """
    return f"{amount} {idempotency_key}"


async def pay_later(amount: int, idempotency_key: str | None) -> str:
    """Pay later."""
    return f"{amount} {idempotency_key} {weft.idempotency_key() == idempotency_key}"


@tool(effect="idempotent", isolate=True)
def pay_apart(amount: int, idempotency_key: str) -> list[Any]:
    """Pay from another process."""
    return [amount, idempotency_key, weft.idempotency_key()]


@tool(effect="once", isolate=Isolation())
def decline(amount: int) -> str:
    """Say no."""
    raise weft.NotDone(f"{amount} is too much", hint="pay less")


def call(made: Tool[..., Any], key: str, **arguments: Any) -> Any:
    async def main() -> Any:
        with keyed(key):
            return await Toolbox(made).call(made.spec.name, arguments)

    return asyncio.run(main())


def test_an_effect_is_part_of_what_is_known_of_a_tool() -> None:
    for effect in ("pure", "idempotent", "once", "unknown"):
        said: Effect = effect
        assert tool(effect=said)(pay).spec.effect == effect
    assert tool(pay).spec.effect == "unknown"
    assert tool(pure=True)(pay).spec.effect == "pure"
    assert not tool(effect="pure")(pay).spec.pure


def test_a_pure_tool_has_no_effect() -> None:
    with pytest.raises(BuildError, match="a pure tool has no effect"):
        tool(pure=True, effect="once")(pay)
    with pytest.raises(ValueError, match="pure"):
        ToolSpec("f", "", {}, pure=True, effect="idempotent")
    assert ToolSpec("f", "", {}, pure=True).effect == "pure"


def test_an_effect_that_there_is_not() -> None:
    with pytest.raises(BuildError, match="no effect 'twice'"):
        tool(effect="twice")(pay)  # type: ignore[call-overload]


def test_models_do_not_see_the_key() -> None:
    made = tool(effect="idempotent")(pay)
    assert list(made.spec.parameters["properties"]) == ["amount"]
    assert call(made, "k1", amount=3) == "3 k1"
    with pytest.raises(ToolArgumentError, match="idempotency_key is unknown"):
        call(made, "k1", amount=3, idempotency_key="mine")


def test_of_another_tool_it_is_a_parameter_like_any() -> None:
    made = tool(effect="once")(pay)
    assert list(made.spec.parameters["properties"]) == ["amount", "idempotency_key"]
    assert call(made, "k1", amount=3, idempotency_key="mine") == "3 mine"


def test_a_parameter_of_another_type_is_the_tools_own() -> None:
    def numbered(idempotency_key: int) -> int:
        """Number."""
        return idempotency_key

    assert call(tool(effect="idempotent")(numbered), "k1", idempotency_key=4) == 4


def test_async_tools_and_those_in_a_process_get_it_too() -> None:
    assert call(tool(effect="idempotent")(pay_later), "k2", amount=3) == "3 k2 True"
    assert call(pay_apart, "k3", amount=3) == [3, "k3", "k3"]


def test_without_a_run_every_call_has_a_key_of_its_own() -> None:
    made = tool(effect="idempotent")(pay)
    assert call(made, "", amount=1) != call(made, "", amount=1)
    assert weft.idempotency_key() != weft.idempotency_key()


def test_that_nothing_happened_is_told_from_a_process_as_well() -> None:
    with pytest.raises(NotDone, match="3 is too much") as raised:
        call(decline, "", amount=3)
    assert raised.value.hint == "pay less"


def test_calls_that_are_made_together_have_no_key_in_common() -> None:
    seen: list[str] = []

    def many(calls: list[Mapping[str, Any]]) -> list[str]:
        seen.append(current_key())
        return ["paid"] * len(calls)

    def one(amount: int) -> str:
        """Pay."""
        return "paid"

    made = tool(effect="idempotent", batch=many)(one)

    async def main() -> None:
        with keyed("that of the first"):
            await Toolbox(made).call_batch("one", [{"amount": 1}, {"amount": 2}])

    asyncio.run(main())
    assert seen == [""]
    with pytest.raises(BuildError, match="no idempotency keys"):
        tool(effect="idempotent", batch=many)(pay)


def test_what_somebody_says_of_a_tool_who_uses_it() -> None:
    made = tool(name="pays", resource="bank", timeout_s=2, version="7")(pay)
    said = made.declared(effect="idempotent")
    assert said.spec.effect == "idempotent"
    assert (said.spec.name, said.resource, said.timeout_s, said.spec.version) == (
        *("pays", "bank", 2, "7"),
    )
    assert list(said.spec.parameters["properties"]) == ["amount"]
    assert made.spec.effect == "unknown"
    with pytest.raises(BuildError, match="pure"):
        tool(pure=True)(pay).declared(effect="once")
