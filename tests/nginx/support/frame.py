"""What a body is: one zstd frame, taken apart and decoded by others' code."""

import shutil
import subprocess
import tempfile

import zstandard

from support.limits import HANG, WINDOW_MAX

MAGIC = b"\x28\xb5\x2f\xfd"


class FrameError(AssertionError):
    pass


class Frame:
    """The fields of the frame at the start of some bytes (RFC 8878)."""

    def __init__(self, data):
        if data[:4] != MAGIC:
            raise FrameError("no zstd frame: begins with %r" % data[:8])
        flags = data[4]
        if flags & 0x08:
            raise FrameError("reserved bit in the frame header")
        at = 5
        self.single_segment = bool(flags & 0x20)
        self.checksum = bool(flags & 0x04)
        self.window = None
        if not self.single_segment:
            self.window = window_of(data[at])
            at += 1
        id_bytes = (0, 1, 2, 4)[flags & 3]
        self.dict_id = int.from_bytes(data[at : at + id_bytes], "little")
        at += id_bytes
        size_bytes = (1 if self.single_segment else 0, 2, 4, 8)[flags >> 6]
        self.content_size = None
        if size_bytes:
            size = int.from_bytes(data[at : at + size_bytes], "little")
            self.content_size = size + (256 if size_bytes == 2 else 0)
        at += size_bytes
        if self.single_segment:
            self.window = self.content_size
        self.blocks = []  # type and size
        at = self.walk(data, at)
        if self.checksum:
            at += 4
        self.size = at
        if at > len(data):
            raise FrameError("the frame is cut")

    def walk(self, data, at):
        last = 0
        while not last:
            if at + 3 > len(data):
                raise FrameError("the frame is cut at byte %d" % len(data))
            header = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = header & 1, header >> 1 & 3, header >> 3
            if kind == 3:
                raise FrameError("reserved block type at %d" % at)
            self.blocks.append((kind, size))
            at += 3 + (1 if kind == 1 else size)
        return at


def window_of(byte):
    base = 1 << (10 + (byte >> 3))
    return base + (base >> 3) * (byte & 7)


def the_frame(body):
    """The only frame of a body, with nothing after it."""
    frame = Frame(body)
    if frame.size != len(body):
        raise FrameError(
            "%d bytes after the frame of %d"
            % (len(body) - frame.size, frame.size)
        )
    if frame.window > WINDOW_MAX:
        raise FrameError("window of %d bytes" % frame.window)
    return frame


def decode_by_library(body, dictionary=None):
    decoder = zstandard.ZstdDecompressor(
        dict_data=dictionary, max_window_size=WINDOW_MAX
    ).decompressobj()
    out = decoder.decompress(body)
    if not decoder.eof or decoder.unused_data:
        raise FrameError("the decoder saw no end, or more than one frame")
    return out


def decode_by_command(body, dict_path=None):
    """By the stock command, with no more memory than a browser gives."""
    command = [shutil.which("zstd"), "-d", "-c", "-q", "--memory=8MB"]
    if dict_path:
        command += ["-D", dict_path]
    with tempfile.TemporaryFile() as f:
        f.write(body)
        f.seek(0)
        done = subprocess.run(
            command, stdin=f, capture_output=True, timeout=HANG
        )
    if done.returncode:
        raise FrameError("zstd: %s" % done.stderr.decode())
    return done.stdout


def difference(got, wanted):
    """Where two contents differ, in few words: they may be megabytes."""
    if got == wanted:
        return None
    at = next(
        (i for i, (a, b) in enumerate(zip(got, wanted)) if a != b),
        min(len(got), len(wanted)),
    )
    return "%d bytes instead of %d, first difference at %d" % (
        len(got),
        len(wanted),
        at,
    )


def check_body(body, wanted, command=True):
    """One frame of these contents for both decoders; returns its fields."""
    frame = the_frame(body)
    wrong = difference(decode_by_library(body), wanted)
    assert wrong is None, "library: " + wrong
    if command:
        wrong = difference(decode_by_command(body), wanted)
        assert wrong is None, "command: " + wrong
    if frame.content_size is not None:
        assert frame.content_size == len(wanted)
    return frame


class Incremental:
    """Decodes what has arrived, as a browser does."""

    def __init__(self):
        self.decoder = zstandard.ZstdDecompressor(
            max_window_size=WINDOW_MAX
        ).decompressobj()
        self.content = bytearray()

    def feed(self, data):
        if data:
            self.content += self.decoder.decompress(data)
        return len(self.content)

    @property
    def ended(self):
        return self.decoder.eof
