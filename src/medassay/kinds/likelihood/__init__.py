"""Items answered by the likelihood of texts."""
