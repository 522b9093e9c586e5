"""WorkflowBench's samples (WorkflowLLM, arXiv 2411.05451) as weft documents with stub tools.

The samples are phone shortcuts as Python-like text. Most do not parse as Python, so they are read
by lines, tolerantly: `lines` finds statements, `values` reads their values, `document` makes nodes.
"""

from evals.planning.workflowbench.document import Imported, import_sample
from evals.planning.workflowbench.samples import ControlFlow, Sample, counted, load_samples

__all__ = ["ControlFlow", "Imported", "Sample", "counted", "import_sample", "load_samples"]
