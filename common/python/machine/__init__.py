"""What this machine is, what it can do at best, and whether it is fit to measure on."""
