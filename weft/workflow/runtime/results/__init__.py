"""What runs come to: results, failures, streams."""
