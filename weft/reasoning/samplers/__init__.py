"""When to take another sample and when to stop: one file per published method."""
