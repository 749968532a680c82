"""What a person runs: the command line, analysis, profiling, load generation and the checks of this tree."""
