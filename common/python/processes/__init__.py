"""The process boundary: what parent and children say to each other, and how children are started and ended."""
