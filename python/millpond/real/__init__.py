"""Real programs in real time over the very paths that a study simulates, as a further column beside both others."""
