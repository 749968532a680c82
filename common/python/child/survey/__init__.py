"""What a machine can do at best, measured: GPU, matrix units, host."""
