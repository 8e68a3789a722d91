"""Orchestration: Dagster assets, checks, jobs, schedules and sensors, and the command line.

What a step does belongs to `memstate_core`, which does not import Dagster.
"""

import atexit
import gc

# Importing Dagster makes a million objects that stay. By default the garbage collector looks for cycles after every 700
# new ones, which took a sixth of the CPU time of a command; a night of the demo takes no more memory.
gc.set_threshold(20_000)

# Python collects garbage once more when it ends. What is left then goes with the process, so frozen objects are not
# looked at: that took 0.4 seconds of every command that loads the definitions.
atexit.register(gc.freeze)
