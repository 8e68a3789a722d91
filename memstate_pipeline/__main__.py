"""`python -m memstate_pipeline` is the `memstate` command."""

from memstate_pipeline.cli.main import main

main()
