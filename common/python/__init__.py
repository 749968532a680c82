"""The harness, in rooms: imports point down only, as `tool.importlinter` in pyproject.toml says and common/docs/architecture.md draws."""
