"""The fold: topics, fields, histories and edges from evidence and recorded decisions; nothing here writes."""
