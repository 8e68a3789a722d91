"""Views: topics, facts, blocks, sessions and resources, each by itself or page by page."""
