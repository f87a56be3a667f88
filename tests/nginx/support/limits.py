"""How long and how much: by the environment, so that the same tests run
under valgrind, under sanitizers and in a hurry."""

import os

SHORT = os.environ.get("SEGZSTD_TEST_SHORT", "") not in ("", "0")

# How many times slower than a plain build the one under test is.
SCALE = float(os.environ.get("SEGZSTD_TEST_SCALE", "1"))

KIB = 1 << 10
MIB = 1 << 20
WINDOW_MAX = 8 * MIB  # what an HTTP client must be able to decode


def seconds(value):
    return value * SCALE


# After this long without a byte something counts as hanging.
HANG = seconds(30)


def pick(full, brief):
    """The first in the full form of the tests, the second in the short."""
    return brief if SHORT else full
