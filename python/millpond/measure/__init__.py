"""From result tables to metrics and statistics."""
