"""Orchestration: Dagster assets, checks, jobs, schedules and sensors, and the command line.

What a step does belongs to `memstate_core`, which does not import Dagster.
"""
