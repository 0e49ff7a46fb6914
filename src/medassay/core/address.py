"""Which IP addresses are of the public internet, and which are of this place: loopback and private
networks.

The lists are explicit: what a Python calls global or private changes with its version. Most
addresses are neither: link-local ones, behind which clouds keep their metadata, and those that
carry another address (6to4, Teredo, NAT64).

Source: IANA's registries of special-purpose addresses (RFC 6890 and its updates), 2026.
"""

from ipaddress import IPv6Address, ip_address, ip_network

_FORBIDDEN = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a provider's translation; a cloud's metadata among it
            "127.0.0.0/8",
            "168.63.129.16/32",  # a cloud's host, at a public address
            "169.254.0.0/16",  # link-local; the metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast among it
            "::/16",  # unspecified, loopback, IPv4-compatible, IPv4-mapped, IPv4-translated
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",
            "100::/64",
            "100:0:0:1::/64",
            "2001::/23",  # Teredo among it
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",  # private
            "fe80::/10",  # link-local
            "fec0::/10",
            "ff00::/8",  # multicast
        ),
    )
)

_OWN = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/32",  # connecting to it reaches this machine
            "10.0.0.0/8",
            "127.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "::/127",  # unspecified and loopback
            "fc00::/7",
        ),
    )
)


def is_own(address: str) -> bool:
    """Return whether an IP address is loopback or of a private network.

    False for what is no address.

    Examples
    --------
    >>> is_own("127.0.0.1"), is_own("::ffff:10.1.2.3"), is_own("169.254.169.254"), is_own("9.9.9.9")
    (True, True, False, False)
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return any(ip in network for network in _OWN)


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet; False for what is no address.

    Examples
    --------
    >>> is_public("9.9.9.9"), is_public("169.254.169.254"), is_public("::ffff:9.9.9.9")
    (True, False, False)
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return ip.is_global and not any(ip in network for network in _FORBIDDEN)
