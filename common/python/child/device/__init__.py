"""The device in a worker: samples, held streams, and what escapes them."""
