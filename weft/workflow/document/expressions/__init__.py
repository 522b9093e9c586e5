"""Templates and expressions: Jinja's syntax in a bounded sandbox."""

from weft.workflow.document.expressions.analysis import BadExpression, Reference
from weft.workflow.document.expressions.template import (
    Template,
    ValueTemplate,
    template,
    value_template,
)

__all__ = ["BadExpression", "Reference", "Template", "ValueTemplate", "template", "value_template"]
