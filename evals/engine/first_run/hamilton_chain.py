"""A chain of 100 with Hamilton's async driver: the functions are made, since there are so many."""

import asyncio
import sys
from inspect import Parameter, Signature
from itertools import pairwise
from typing import Any

from hamilton import ad_hoc_utils, base
from hamilton.async_driver import AsyncDriver


def made(name: str, parent: str) -> Any:
    """A function `name` with a parameter `parent`."""

    async def step(**values: int) -> int:
        return values[parent] + 1

    parameter = Parameter(parent, Parameter.POSITIONAL_OR_KEYWORD, annotation=int)
    step.__name__ = name
    step.__signature__ = Signature([parameter], return_annotation=int)  # type: ignore[attr-defined]
    step.__annotations__ = {parent: int, "return": int}
    return step


names = ["first", *(f"n{number}" for number in range(100))]
functions = [made(name, parent) for parent, name in pairwise(names)]
module = ad_hoc_utils.create_temporary_module(*functions)
driver = AsyncDriver({}, module, result_builder=base.DictResult())

first = int(sys.argv[1])
if asyncio.run(driver.execute(["n99"], inputs={"first": first}))["n99"] != first + 100:
    sys.exit("not a chain of 100")
