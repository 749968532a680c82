"""What is in the tree: pairs, their directives, claims and workloads, and the targets that name them."""
