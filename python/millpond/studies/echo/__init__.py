"""What the study `echo` has for itself."""
