"""Contents: text that compresses like text, random bytes, real files."""

import functools
import glob
import itertools
import os
import random

from support.limits import KIB, MIB

# Around the borders at which a filter can go wrong: nothing, the default of
# zstd_min_length, a page, the encoder's input unit, a segment.
SIZES = (
    0,
    1,
    19,
    20,
    4095,
    4096,
    4097,
    128 * KIB - 1,
    128 * KIB,
    128 * KIB + 1,
    141186,
    MIB - 1,
    MIB,
    MIB + 1,
    MIB + 512 * KIB,
    4 * MIB + 1,
    10 * MIB,
)

BASE_BYTES = 6 * MIB
CACHE = os.path.expanduser("~/.cache/segzstd")


def make_words(rnd):
    """Common words are short, and a few of them are most of a text."""
    letters = "etaoinshrdlucmfwypvbgk"
    words = [
        "".join(rnd.choices(letters, k=min(2 + i // 40, rnd.randrange(2, 12))))
        for i in range(6000)
    ]
    weights = [1 / (i + 3) for i in range(len(words))]
    return words, list(itertools.accumulate(weights))


@functools.lru_cache(maxsize=None)
def base_text():
    rnd = random.Random(20)
    words, weights = make_words(rnd)
    lines = []
    size = 0
    number = 0
    while size < BASE_BYTES:
        drawn = rnd.choices(words, cum_weights=weights, k=4000)
        for i in range(0, len(drawn), 10):
            number += 1
            line = '{"id":%d,"text":"%s"},\n' % (
                number,
                " ".join(drawn[i : i + 10]),
            )
            lines.append(line)
            size += len(line)
    return "".join(lines).encode()[:BASE_BYTES]


@functools.lru_cache(maxsize=64)
def text(size, seed=0):
    """Of one size and seed always the same bytes."""
    base = base_text()
    start = seed * 7919 % (BASE_BYTES // 2)
    parts = []
    left = size
    while left > 0:
        part = base[start : start + left]
        parts.append(part)
        left -= len(part)
        start = (start + 31 * KIB + 7) % (BASE_BYTES // 2)
    return b"".join(parts)


def noise(size, seed=1):
    return random.Random(seed).randbytes(size)


def real_files():
    """Pairs of name and content of files as sites serve them: those that the
    benchmark has fetched before, or else text."""
    found = []
    for pattern in (
        "react-dom@*/package/cjs/react-dom-client.production.js",
        "react-dom@*/package/package.json",
        "world-atlas@*/package/countries-50m.json",
        "world-atlas@*/package/land-110m.json",
    ):
        for path in sorted(glob.glob(os.path.join(CACHE, pattern)))[:1]:
            with open(path, "rb") as f:
                found.append((os.path.basename(path), f.read()))
    if not found:
        found = [("page.js", text(530011, 5)), ("small.json", text(1911, 6))]
    return found
