"""The schema of a workflow file as pydantic models."""
