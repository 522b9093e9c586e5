"""`python -m evals.durability [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from evals.sections import Sections

if __name__ == "__main__":
    Sections("durability", ("chain_100", "fanout_1000", "map_10000", "conversation_50")).main(
        "What durable steps cost in time and bytes, beside LangGraph, DBOS and Prefect on SQLite."
    )
