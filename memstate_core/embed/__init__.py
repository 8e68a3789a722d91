"""From text to vectors: the encoder, loaded only when a text is really new, and the cache before it."""
