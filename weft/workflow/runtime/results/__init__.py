"""Results of runs: values, failures, streams."""
