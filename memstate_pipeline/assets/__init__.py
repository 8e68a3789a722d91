"""The assets of the nightly run, one module for each group."""
