"""What a run gives: result, streams, and why it failed."""
