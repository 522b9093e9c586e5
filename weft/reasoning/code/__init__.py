"""Programs that models write: a sandbox to run them, and strategies that learn from their runs."""
