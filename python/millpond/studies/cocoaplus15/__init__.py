"""What the study of CoCoA+ on radio meshes shows beyond what every study shows."""
