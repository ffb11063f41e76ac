"""What the study `anrw18` has for itself."""
