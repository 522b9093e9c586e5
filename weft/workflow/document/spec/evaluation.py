"""The `evaluation` of a workflow: data, metrics and environment. Read by `weft.evaluation`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.workflow.document.spec.fields import (
    Name,
    SpecPart,
    Value,
    expands,
    optional,
    optional_mapping,
    shortens,
)
from weft.workflow.document.spec.schemas import SchemaSpec

Split = Literal["train", "dev", "held_out"]


class DataSpec(SpecPart):
    """Where the cases are, and which columns are what. A template sees the row as `case`."""

    file: str = Field(
        description="A .jsonl, .csv or .parquet file beside the workflow, `./data.py:function`, or "
        "`hf:NAME:SPLIT` for a data set of Hugging Face.",
        min_length=1,
    )
    inputs: dict[Name, Value] = optional_mapping(
        "The inputs of the workflow, such as `{{ case.question }}`; else columns of their names."
    )
    expected: Value = optional("What is right; else the column `expected`.")
    id: Value = optional("The id of a case; else the column `id`, else the number of the row.")
    group: Value = optional(
        "Cases of one group stay in one split; else the column `group`, else the case's id."
    )


class MetricSpec(SpecPart):
    """A metric: a built-in one, or a function `(case, outputs)` or `(case, outputs, trace)`."""

    use: str = Field(
        description="exact, numeric, f1, schema, code, judge, or `./metrics.py:function`.",
        min_length=1,
    )
    output: Name | None = optional("The output that it reads; else the only one, or all.")
    tolerance: float | None = optional("numeric: the largest absolute difference.", ge=0)
    answer_schema: SchemaSpec | None = optional(
        "schema: what the output has to fit.", alias="schema"
    )
    model: str | None = optional("judge: a name under `models`, or such as `vllm:NAME`.")
    criteria: str | None = optional("judge: what makes an answer better.")


Metric = Annotated[MetricSpec, expands("use", str | MetricSpec), shortens("use")]
"""`correct: exact`, or a mapping."""
Data = Annotated[DataSpec, expands("file", str | DataSpec), shortens("file")]
"""`data: cases.jsonl`, or a mapping."""


class EvaluationSpec(SpecPart):
    """How `weft eval` measures the workflow; a run of the workflow does not use it."""

    data: Data | None = optional("The cases.")
    metrics: dict[Name, Metric] = optional_mapping("By name; the first one is the main one.")
    replicates: Annotated[int, Field(ge=1)] = Field(
        default=1, description="How often each case runs."
    )
    split: Split | None = optional("Only the cases of this split.")
    limit: Annotated[int, Field(ge=1)] | None = optional("Only so many cases.")
    prepare: Name | None = optional(
        "The node that sets up a case's environment; where it fails, the case is unscored."
    )
    check: Name | None = optional("The node whose value is a score: the metric `check`.")
    tear_down: Name | None = optional(
        "The node that removes the environment; where it fails, the case is unscored."
    )
