"""How the bytes of a dump are packed: plain, compressed, zip archives, JSON arrays, Parquet."""
