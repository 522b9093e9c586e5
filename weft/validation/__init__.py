"""JSON values checked against JSON Schemas (draft 2020-12), both possibly from untrusted sources.

compile_schema(schema)            a bounded, compiled schema, or `SchemaRefused`
misfit(value, schema)             why a value does not fit; may block for `WAIT_LIMIT_S`
await misfit_async(value, schema) the same without blocking the event loop
violation(value, schema)          as `misfit`; failure to check is a reason too
answer_violation(answer, schema)  as `violation`, for what a person answers
read_answer(text, schema)         the value in a model's text, or `ModelOutputError`

Patterns are matched in linear time. A check that could take long runs in its own process, with a
limit of processor time.
"""

from weft.validation.answer import read_answer, read_answer_async
from weft.validation.approval import answer_violation
from weft.validation.bounds import SchemaRefused, TooMuchToCheck
from weft.validation.compiled import (
    CompiledSchema,
    compile_schema,
    compile_schema_async,
    misfit,
    misfit_async,
    pattern_error,
    violation,
    violation_async,
)
from weft.validation.schema_cost import reference_target

__all__ = [
    "CompiledSchema",
    "SchemaRefused",
    "TooMuchToCheck",
    "answer_violation",
    "compile_schema",
    "compile_schema_async",
    "misfit",
    "misfit_async",
    "pattern_error",
    "read_answer",
    "read_answer_async",
    "reference_target",
    "violation",
    "violation_async",
]
