"""What a run holds: plans of its rows, children at work, builds."""
