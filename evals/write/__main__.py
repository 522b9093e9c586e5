"""`python -m evals.write [--quick] [--only A,B] [--json FILE]`: writing and repairing workflows.

imported   50 samples of WorkflowBench as weft documents: accepted, control flow kept
planted    defects planted in these documents and the examples: found, repaired, others changed
authored   the same documents written in layers by an author that errs at stated rates
embedded   two small workflows by the embedded model

The scripted models repair what they are told, from the document before it was spoilt: their rows
measure finding, repair and isolation, never skill.
"""

from evals.sections import Sections

NAMES = ("imported", "planted", "authored", "embedded")

if __name__ == "__main__":
    assert __doc__ is not None
    Sections("write", NAMES).main(__doc__)
