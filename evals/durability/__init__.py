"""What it costs to keep what happened, in time and in bytes, beside LangGraph and DBOS."""
