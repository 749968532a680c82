"""Process pairs, timed against each other until the gate can decide."""
