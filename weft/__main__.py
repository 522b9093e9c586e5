"""`python -m weft`: the command line."""

from weft.cli.main import run

if __name__ == "__main__":
    run()
