"""The nightly run as a whole: the placements step, checks, publishing, rebuilding, verifying, plans, corrections."""
