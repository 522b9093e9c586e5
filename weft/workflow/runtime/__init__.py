"""One run of a workflow: its options, tools, models, record and results."""
