"""Checks that import the tools of a workflow: types, arguments, effects. Runs nothing."""
