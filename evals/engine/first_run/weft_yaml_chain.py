"""A chain of 100 from a workflow file, recorded as by default."""

import sys

import weft

first = int(sys.argv[1])
if weft.load("chain_100.yaml").run_sync(first=first)["last"] != first + 100:
    sys.exit("not a chain of 100")
