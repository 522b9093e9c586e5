"""What is printed of runs that have ended or were recorded: tables, differences, JSON."""
