"""What models get besides the question: retrieved passages and tools."""
