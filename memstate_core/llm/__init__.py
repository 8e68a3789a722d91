"""The optional extractor: a language model reads turns, and what it answers is held to the rules of an import.

`endpoint` sends one request, `asking` decides whether and how often one is sent, `conversation` asks about one
stretch of a session, `sandbox` about a whole session (first phase), `integration` finds the place of its topics
among those that exist (second phase), and `extractor` does so for all new turns of a run. Nothing here runs
without `[extractor]` in the settings; what was understood is recorded like any other placement, so neither a
later night nor a rebuild asks again.
"""
