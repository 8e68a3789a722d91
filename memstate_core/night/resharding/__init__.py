"""Changes the number of shards of a store: builds the new ones beside the old, verifies them, switches at once."""
