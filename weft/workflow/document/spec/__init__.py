"""The schema of a workflow file as frozen pydantic models."""
