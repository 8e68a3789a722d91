"""The nightly run as a whole: placements step, checks, publishing, rebuild, verification, plans, corrections."""
