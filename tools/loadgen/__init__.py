"""Load for servers that are not of this tree."""
