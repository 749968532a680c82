"""The harness: one job a module; imports point down only (see the layers in tools/checks/tree.py)."""
