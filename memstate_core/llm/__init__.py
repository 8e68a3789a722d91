"""The optional extractor: a language model turns conversations into topics, validated like imported rows.

`endpoint` sends one request. `model_client` adds the cache, retries and the budget. `conversation` repairs and
continues answers. `sandbox` extracts the topics of one session (first phase), `integration` matches them with
existing topics (second phase), and `extractor` does both for all new turns of a run. Nothing here runs without
`[extractor]` in the settings. Results are recorded as placements, so neither a later night nor a rebuild sends
the same request again.
"""
