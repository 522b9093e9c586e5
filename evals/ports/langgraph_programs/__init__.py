"""Each job as a program of LangGraph, complete in one module whose lines are counted."""
