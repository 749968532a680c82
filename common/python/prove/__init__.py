"""Whether a technique that a side claims is in its machine code and in what it launches."""
