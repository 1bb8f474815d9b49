"""From the bytes of a submitted notebook to a graded notebook and a report."""
