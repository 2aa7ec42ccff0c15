"""The report of runs: figures, tables, charts, and one page that holds them with every episode."""
