"""What single studies have for themselves."""
