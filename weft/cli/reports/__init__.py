"""Printed reports of finished and recorded runs: tables, differences, JSON."""
