"""`python -m evals.engine [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from __future__ import annotations

from evals.engine.evaluation import ALL, FULL, QUICK, Evaluation, peer_versions
from evals.engine.plot import draw
from evals.engine.report import table
from evals.results import environment, title, write_results
from evals.sectioned import arguments


def main() -> None:
    """Evaluate; print the table; write what was asked for."""
    asked = arguments(
        "engine", "What a run costs beside its work: weft, bare asyncio and other frameworks.", ALL
    )
    evaluation = Evaluation(QUICK if asked.quick else FULL)
    evaluation.run(asked.only)
    about = environment(**peer_versions())
    print(f"\n{title(about)}\n")
    print(table(evaluation.rows))
    if asked.json:
        write_results(asked.json, evaluation.rows, about)
    if asked.plot:
        draw(evaluation.rows, asked.plot)


if __name__ == "__main__":
    main()
