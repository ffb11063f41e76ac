"""What the study `tcp20` has for itself."""
