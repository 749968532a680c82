"""Reports over runs that are done."""
