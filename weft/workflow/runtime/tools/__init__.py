"""Tools of a run: imported functions and started servers."""
