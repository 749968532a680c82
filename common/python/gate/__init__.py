"""Whether a timing is what is expected of this GPU model: statistics, noise floors, expectations, verdicts."""
