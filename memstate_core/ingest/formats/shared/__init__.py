"""What several formats share: the reader's interface, messages as rows, branches, ids of messages without one."""
