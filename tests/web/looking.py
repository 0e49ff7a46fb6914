"""What tests of pages share: a folder served, and scripts that find what cannot be read."""

import re
import subprocess
import sys
from contextlib import contextmanager

# A column whose cells hold eight characters or more must be that wide; a head must hold its longest
# word; nothing runs out of its cell.
NARROW = """() => [...document.querySelectorAll('th, td')].flatMap(cell => {
  const words = cell.innerText.trim(), isHead = cell.closest('thead') !== null;
  if (!cell.getClientRects().length || (!isHead && words.length < 8)) return [];
  const style = getComputedStyle(cell), pen = document.createElement('canvas').getContext('2d');
  pen.font = style.font;
  const width = word => pen.measureText(word).width;
  const inside = cell.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const needed = isHead ? Math.max(...words.split(/\\s+/).map(width)) : 8 * width('0');
  return inside + 1 < needed || cell.scrollWidth > cell.clientWidth + 1 ? [`${cell.closest('table').className}: ${Math.round(inside)} of ${Math.round(needed)} px for "${words.slice(0, 40)}"`] : [];
})"""

UNNAMED = """() => [...document.querySelectorAll('tbody td')].filter(cell => {
  if (!cell.getClientRects().length || !/^[−–+-]?[0-9⚠]/.test(cell.innerText.trim())) return false;
  const row = cell.closest('tr');
  if (getComputedStyle(row).display !== 'flex') return false;  // its head stands above it
  if (row.cells.length === 2 && row.cells[0].tagName === 'TH') return false;  // its row's name stands beside it
  return ['none', 'normal', ''].includes(getComputedStyle(cell, '::before').content);
}).map(cell => `${cell.closest('table').className}: ${cell.innerText.slice(0, 40)}`)"""


@contextmanager
def served(folder):
    """Serve a folder by HTTP; gives its address."""
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = re.search(r"port (\d+)", server.stdout.readline())[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
