"""The five tools of the mode `tools`, and the conversation in which a model calls them."""
