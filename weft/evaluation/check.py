"""Checks that the files and functions of a workflow's `evaluation` are there."""

from __future__ import annotations

from weft.core.errors import BuildError
from weft.evaluation.metrics import metrics_of
from weft.evaluation.rows import check_source
from weft.workflow.document.defect_log import DefectLog
from weft.workflow.document.unit import Unit


def check_evaluation_files(unit: Unit) -> None:
    """Import the metrics and look for the data; nothing is evaluated.

    Raises: `BuildError` for the first defect; its `defects` are all of them.
    """
    spec, log = unit.document.evaluation, DefectLog()
    for name, metric in ({} if spec is None else spec.metrics).items():
        with log:
            try:
                metrics_of({name: metric}, unit.folder)
            except BuildError as error:
                unit.fail(error, ("evaluation", "metrics", name))
    if spec is not None and spec.data is not None:
        with log:
            try:
                check_source(spec.data.file, unit.folder)
            except BuildError as error:
                unit.fail(error, ("evaluation", "data"))
    log.finish()
