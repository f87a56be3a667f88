"""The options of run.py."""

import argparse
import shlex
import sys

import peers
import plan


def words(known):
    """A list of words that are known."""
    def split(text):
        found = text.split(',')
        for word in found:
            if word not in known:
                raise argparse.ArgumentTypeError(
                    f'"{word}" is none of {", ".join(known)}')
        return found
    return split


def variant(text):
    try:
        return peers.add_variant(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(e) from None


def numbers(text):
    return [int(part) for part in text.split(',')]


def add_places(parser):
    for name, about in (
            ('module', 'our ngx_http_zstd_filter_module.so'),
            ('system-modules', 'the folder of packaged modules'),
            ('corpus', 'the folder that corpus.sh filled'),
            ('load', 'segzstd_load'), ('results', 'folder for the results')):
        parser.add_argument(f'--{name}', required=True, help=about)
    parser.add_argument('--command', default=shlex.join(sys.argv),
                        help='what was typed, for the results')
    parser.add_argument('--hdr', action='store_true',
                        help='the client has HdrHistogram')


def parse(about):
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog='run.py', description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add_places(parser)
    parser.add_argument('--quick', action='store_true',
                        help='two levels, fewer files and peers, one round')
    parser.add_argument('--runs', type=words(plan.RUNS), default=plan.RUNS,
                        help=f'of {",".join(plan.RUNS)}')
    parser.add_argument('--peers', type=words(peers.ALL),
                        help=f'of {",".join(peers.ALL)}; each in all runs')
    parser.add_argument('--variant', type=variant, action='append',
                        metavar='NAME=DIRECTIVES', default=[],
                        help='our module with more directives of a location, '
                        'as in "eager=zstd_inline 5ms;", as a peer; then only '
                        'these and "pool" are measured, or what a --peers '
                        'behind it says. May be given again')
    parser.add_argument('--levels', type=numbers, help='as in 3,9')
    parser.add_argument('--files', type=words(plan.FILES),
                        help=f'of {",".join(plan.FILES)}')
    parser.add_argument('--rounds', type=int,
                        help='3, or 1 with --quick; fewer if there is no time')
    parser.add_argument('--minutes', type=float,
                        help='no run begins later, and no further round that '
                        'would end later (55, or 3.3 with --quick)')
    args = parser.parse_args()
    if args.variant and not args.peers:
        args.peers = ['pool', *args.variant]
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.minutes = args.minutes or (3.3 if args.quick else 55)
    return args
