"""A chain of 100 with DBOS on SQLite."""

import sys

from dbos import DBOS


@DBOS.step()
def step(value: int) -> int:
    """Do nothing."""
    return value + 1


@DBOS.workflow()
def chain(value: int) -> int:
    """One step after the other."""
    for _ in range(100):
        value = step(value)
    return value


DBOS(
    config={
        "name": "chain",
        "system_database_url": "sqlite:///dbos.sqlite",
        "run_admin_server": False,
        "log_level": "ERROR",
    }
)
DBOS.launch()
first = int(sys.argv[1])
last = chain(first)
DBOS.destroy()
if last != first + 100:
    sys.exit("not a chain of 100")
