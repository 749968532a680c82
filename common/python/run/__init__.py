"""The commands behind the CLI: a run, noise trials, peak, show."""
