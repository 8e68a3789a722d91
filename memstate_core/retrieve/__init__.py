"""Retrieval: the reading side of a published snapshot.

`index` writes the files that a query reads beside the graph; `reader` opens a snapshot; `query` answers a question,
`topic` reads one topic, `export` all. Nothing here changes a store, and neither a model nor the graph is imported
before it is needed.
"""
