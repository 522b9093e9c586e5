"""Drafters that run a draft model beside the target."""
