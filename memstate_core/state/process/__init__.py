"""The process: its memory, its interruptions, and the threads and processes that work beside it."""
