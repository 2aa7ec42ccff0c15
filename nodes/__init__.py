"""The nodes of the repair graph: thin adapters over functions that know no LangGraph."""
