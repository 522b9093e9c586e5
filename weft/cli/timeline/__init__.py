"""One self-contained HTML page with the Gantt chart of a run."""
