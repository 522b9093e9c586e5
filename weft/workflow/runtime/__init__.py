"""One run of a compiled workflow: options, models, tools, journal, result."""
