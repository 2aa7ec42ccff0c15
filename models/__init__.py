"""Chat models by name, the encoder, and the reply record."""
