"""Templates as text files, their rendering within a token budget, and SQL out of a reply."""
