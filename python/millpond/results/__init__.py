"""Results directories: Parquet tables and a manifest."""
