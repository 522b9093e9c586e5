"""`python -m evals.speculative [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from evals.speculative.sections import SECTIONS

if __name__ == "__main__":
    SECTIONS.main(
        "Several tokens a step: passes, accepted tokens and time, against plain decoding."
    )
