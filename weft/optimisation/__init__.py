"""Optimisation of workflows: typed edits, outcome tables, search and decision."""
