"""memstate under Dagster: assets, checks, jobs, schedules, sensors, and the command line around them.

Only orchestration lives here. What a step does is in `memstate_core`, which knows nothing of Dagster.
"""
