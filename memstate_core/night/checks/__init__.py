"""The correctness conditions C1 to C6, written against the ledger, the policy and the graph.

`suite` runs them on a working graph before it is published and on a served snapshot; `recorded` and `derived`
give the expected state by the ledger; each condition has a module of its own. Nothing here imports a step that it
checks: placement, fold, merges, review queue, salience and ladder are recomputed by independent code.
"""
