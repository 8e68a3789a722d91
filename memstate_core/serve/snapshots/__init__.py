"""The served snapshot: opened, warmed, swapped when a run publishes, closed when idle."""
