"""Each job as a program of weft, complete in one module whose lines are counted."""
