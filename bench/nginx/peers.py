"""The ways to send a response that are compared."""

import dataclasses
import re

OURS = 'segzstd'
PACKAGED = 'packaged'
BROTLI = 'brotli'

LEVELS = (3, 9, 15, 19)


@dataclasses.dataclass(frozen=True)
class Peer:
    """A way, as an operator would configure it."""
    name: str
    label: str
    module: str = ''        # OURS, PACKAGED, BROTLI; '' for NGINX alone
    coding: str = 'identity'
    directives: str = ''    # of a location, with {level}

    @property
    def zstd(self):
        return self.coding == 'zstd'

    @property
    def levels(self):
        return LEVELS if self.zstd else (None,)

    def location(self, level):
        """Its directives in a location, at this level."""
        return self.directives.format(level=level)


def zstd(name, label, more='', module=OURS):
    """A zstd filter with all but `more` at its defaults."""
    return Peer(name, label, module, 'zstd',
                'zstd on; zstd_comp_level {level}; zstd_types *; ' + more)


ALL = {peer.name: peer for peer in (
    Peer('off', 'no compression'),
    Peer('copied', 'no compression, sendfile off', directives='sendfile off;'),
    Peer('gzip', "NGINX's gzip, level 6", '', 'gzip',
         'gzip on; gzip_comp_level 6; gzip_types *;'),
    Peer('brotli', 'packaged brotli filter, level 5', BROTLI, 'br',
         'brotli on; brotli_comp_level 5; brotli_types *;'),
    zstd('packaged', 'packaged zstd filter', module=PACKAGED),
    zstd('loop', 'libsegzstd, event loop', 'zstd_thread_pool off;'),
    zstd('pool', 'libsegzstd, pool'),
    zstd('pool-1m', 'libsegzstd, pool, segments of 1 MiB',
         'zstd_parallel_segment_size 1m;'),
    zstd('pool-4m', 'libsegzstd, pool, segments of 4 MiB',
         'zstd_parallel_segment_size 4m;'),
    zstd('tasks-1', 'libsegzstd, pool, 1 task', 'zstd_parallel_tasks 1;'),
    zstd('tasks-2', 'libsegzstd, pool, 2 tasks', 'zstd_parallel_tasks 2;'),
    zstd('tasks-4', 'libsegzstd, pool, 4 tasks', 'zstd_parallel_tasks 4;'),
)}


def add_variant(text):
    """NAME=DIRECTIVES: our module with more directives is a peer, too."""
    name, found, more = text.partition('=')
    if not found or not re.fullmatch('[a-z0-9-]+', name):
        raise ValueError(f'"{text}" is no NAME=DIRECTIVES')
    if name in ALL:
        raise ValueError(f'there is a peer "{name}" already')
    more = more.strip().rstrip(';')
    ALL[name] = zstd(name, f'libsegzstd, {more or "pool"}',
                     f'{more};' if more else '')
    return name
