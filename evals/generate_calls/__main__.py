"""`python -m evals.generate_calls [--quick] [--only A,B] [--json FILE] [--plot FILE]`."""

from evals.sections import Sections

if __name__ == "__main__":
    Sections("generate_calls", ("planted", "gold", "styles", "throughput")).main(
        "Planted bad items by gate, gold of BFCL refused, items by style, throughput with tools."
    )
