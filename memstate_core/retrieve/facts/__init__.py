"""Facts: the values of fields that hold, their histories, edges and conflicts."""
