"""`python -m evals.diffusion [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from evals.diffusion.sections import SECTIONS

if __name__ == "__main__":
    SECTIONS.main("Diffusion decoding: valid answers and tokens a pass, one policy beside another.")
