"""The operator *ingest*: dumps become evidence, evidence finds its topic.

`importer` and `inbox` read dumps into the ledger, `placement`, `segmentation` and `extract` say to which
topics evidence belongs. Nothing here touches the graph.
"""
