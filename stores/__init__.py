"""The causally gated cross-episode memory."""

from merit_sql.stores.episodic import EpisodicMemory
from merit_sql.stores.exchange import export_memory, import_memory
from merit_sql.stores.ranking import RetrievalPolicy

__all__ = ["EpisodicMemory", "RetrievalPolicy", "export_memory", "import_memory"]
