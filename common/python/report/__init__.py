"""What people read: rows, tables, charts, pages, and the folder of a run."""
