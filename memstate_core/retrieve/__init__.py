"""Retrieve: the reading side of a published snapshot.

`index` writes the files that a query reads beside the graph; `reader` opens a snapshot; `query` answers a
question, `topic` one id, `export` everything. Nothing here changes a store, and nothing imports a model
or the graph before it is needed.
"""
