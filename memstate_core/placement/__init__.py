"""Which topic evidence belongs to: by id, key, title or subject. Nothing here touches the graph."""
