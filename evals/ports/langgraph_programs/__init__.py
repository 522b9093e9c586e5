"""Each job as a program of LangGraph; each module is complete by itself, and its lines are counted."""
