"""Checks of the tree itself, run by CI: house rules, published schemas, README commands and chapter tables."""
