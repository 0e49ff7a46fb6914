"""What the review app keeps: accounts, studies, assignments, reviews, tickets, and the trail of all
of it.
"""
