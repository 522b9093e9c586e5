"""`python -m evals.parallelbench --model NAME [--decode D] [--tasks A,B] [--count N]`."""

from evals.parallelbench.runner import main

if __name__ == "__main__":
    main()
