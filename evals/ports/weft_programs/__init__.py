"""Each job as a program of weft; each module is complete by itself, and its lines are counted."""
