"""Content stores by address: a folder, a bucket of an S3-compatible server, PostgreSQL."""

from weft.workflow.content.address import open_content_store

__all__ = ["open_content_store"]
