"""Runs that outlive their process: journal, recorded calls, resume, replay, simulation."""
