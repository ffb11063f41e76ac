"""What the study `burst23` has for itself."""
