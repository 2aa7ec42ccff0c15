"""The causally gated cross-episode memory."""
