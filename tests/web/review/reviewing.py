"""A review as a browser fills it in."""


def review(client, study, number, **fields):
    """Fill in an item and submit it as its page is."""
    page = client.get(f"/s/{study}/i/{number}")
    return client.post(f"/s/{study}/i/{number}", version=page.version, do="submit", **fields)
