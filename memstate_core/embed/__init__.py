"""Sentence embeddings: the encoder, which is loaded at the first uncached text, the vector cache, token counts."""
