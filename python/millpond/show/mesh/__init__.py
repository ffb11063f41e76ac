"""Meshes of radios drawn: where their nodes stand, what they are, and the tree between them."""
