"""The Merkle tree of RFC 6962 over canonical records, built as a stream."""

from hashlib import sha256


class MerkleTree:
    """Takes leaves one by one and keeps log₂(n) hashes.

    Examples
    --------
    >>> tree = MerkleTree()
    >>> tree.root().hex()[:8]
    'e3b0c442'
    >>> tree.add(b""); tree.root().hex()[:8]
    '6e340b9c'
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, bytes]] = []  # (leaves below, hash), largest first
        self.count = 0

    def add(self, record: bytes) -> None:
        """Append one leaf."""
        node, size = sha256(b"\x00" + record).digest(), 1
        while self._stack and self._stack[-1][0] == size:
            _, left = self._stack.pop()
            node, size = sha256(b"\x01" + left + node).digest(), size * 2
        self._stack.append((size, node))
        self.count += 1

    def root(self) -> bytes:
        """Return the hash of the whole tree; SHA-256 of nothing for an empty one."""
        if not self._stack:
            return sha256(b"").digest()
        node = self._stack[-1][1]
        for _, left in reversed(self._stack[:-1]):
            node = sha256(b"\x01" + left + node).digest()
        return node
