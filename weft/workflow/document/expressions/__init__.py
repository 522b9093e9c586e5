"""Templates and expressions: Jinja's syntax in a sandbox with bounds. Knows no nodes."""

from weft.workflow.document.expressions.analysis import BadExpression, Reference
from weft.workflow.document.expressions.template import (
    Template,
    ValueTemplate,
    template,
    value_template,
)

__all__ = ["BadExpression", "Reference", "Template", "ValueTemplate", "template", "value_template"]
