"""Sentence embeddings: the encoder and its runtimes, loaded at the first uncached text, vector cache, token counts."""
