"""`python -m evals.simulation [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from evals.sections import Sections

SECTIONS = Sections("simulation", ("fidelity", "load", "scale", "cluster"))

if __name__ == "__main__":
    SECTIONS.main("How near simulated runs come to real ones, and what a simulated node costs.")
