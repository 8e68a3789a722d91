"""Shared parts of formats: the interface of readers, messages as rows, branches, ids for messages without one."""
