"""Questions: their language, the dates in them, and whether they ask for what holds now."""
