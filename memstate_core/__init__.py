"""memstate: the library. It knows files, frames, graphs and models; it knows nothing of Dagster."""

__version__ = "0.1.0"
