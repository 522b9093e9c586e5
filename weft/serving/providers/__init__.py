"""Clients of hosted APIs, through the vendors' own libraries (the extra `providers`)."""
