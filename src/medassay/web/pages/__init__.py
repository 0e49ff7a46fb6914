"""The pages of the review app: one file for each group of people who meet them."""
