"""The tools of a run, and the functions that a document names."""
