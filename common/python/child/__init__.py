"""Beyond the process boundary: the only room that imports torch; workers, the referee, and what they are sealed with."""
