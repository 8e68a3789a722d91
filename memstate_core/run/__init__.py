"""One run of one shard: its fixed facts, its scratch folder, its steps, the open store."""
