"""Pictures of real reports for the documentation, each made from a run that is committed here."""
