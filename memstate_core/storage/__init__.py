"""Folders and object storage that hold contents by name: objects by digest, and documents that are replaced."""
