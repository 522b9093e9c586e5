"""What can be wrong with a workflow before it runs: references, joins, types. Runs nothing."""
