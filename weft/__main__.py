"""`python -m weft`: the command line."""

from weft.cli.entry import run

if __name__ == "__main__":
    run()
