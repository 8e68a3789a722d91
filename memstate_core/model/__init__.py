"""The words of the system as types: errors, ids, scopes, records of a dump, columns of each frame."""
