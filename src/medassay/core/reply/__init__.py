"""Reading of model replies: thoughts, JSON, refusals."""
