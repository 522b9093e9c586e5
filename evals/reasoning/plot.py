"""One picture of the sections' main figures, side by side. Needs matplotlib; knows no section."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from evals.engine.rows import Lookup
from evals.reasoning.report import Modules
from evals.reasoning.sections import Found, module


def draw(found: Sequence[Found], path: Path, modules: Modules = module) -> bool:
    """Write the picture to `path`, in the format of its suffix; False: there is nothing to draw.

    Raises `ImportError` without matplotlib.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figures = Lookup(chain.from_iterable(rows for _, rows in found))
    measured = [name for name, rows in found if any(row.value is not None for row in rows)]
    panels = [panel for name in measured if (panel := getattr(modules(name), "panel", None))]
    if not panels:
        return False
    size = (5.5 * len(panels), 5)
    figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
    for panel, place in zip(panels, axes[0], strict=True):
        panel(place, figures)
        place.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True
