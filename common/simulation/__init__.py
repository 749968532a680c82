"""SIMULATION: what the machine at hand lacks, as discrete events. No figure from here is a measurement, and none enters a row."""
