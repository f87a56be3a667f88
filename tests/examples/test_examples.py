#!/usr/bin/python3
"""Runs the programs of examples/ as their users do.

    test_examples.py FOLDER PROGRAM...      those programs, built in FOLDER

Bodies are decoded by the stock zstd command, event streams by the stock
library's streaming decoder. Nothing here waits for a time to pass: all waiting
is for bytes on a socket or a pipe, with a limit after which the test fails.
"""

import concurrent.futures
import contextlib
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import zstandard

LIMIT = 120  # seconds that anything may take before it counts as hanging
MIB = 1 << 20

folder = None  # of the programs
work = None  # of the files that the tests make

# What a client says so that its server may compress.
ZSTD = ("-H", "Accept-Encoding: zstd")


# ---------------------------------------------------------------------------
# Contents
# ---------------------------------------------------------------------------


def make_text(size, seed=1):
    """Lines of words, so that there is something to find at every level."""
    rnd = random.Random(seed)
    words = ["%x" % rnd.getrandbits(rnd.randrange(8, 40)) for _ in range(3000)]
    text = bytearray()
    while len(text) < size:
        line = "%d %s\n" % (len(text), " ".join(rnd.choices(words, k=400)))
        text += line.encode()
    return bytes(text[:size])


def make_random(size, seed=2):
    return random.Random(seed).randbytes(size)


def write_file(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def decode(frame):
    """By the stock command: whole frames, and nothing behind them."""
    done = subprocess.run(
        ["zstd", "-dcq"], input=frame, stdout=subprocess.PIPE, timeout=LIMIT
    )
    if done.returncode != 0:
        raise AssertionError("zstd -d refuses a frame of %d bytes" % len(frame))
    return done.stdout


# ---------------------------------------------------------------------------
# Programs that read and write
# ---------------------------------------------------------------------------


def program(name):
    return os.path.join(folder, name)


def run(name, *args, content=b""):
    """Returns what the program wrote; fails unless it ended well."""
    done = subprocess.run(
        [program(name), *args],
        input=content,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=LIMIT,
    )
    if done.returncode != 0:
        raise AssertionError(
            "%s: exit code %d\n%s"
            % (name, done.returncode, done.stderr.decode(errors="replace"))
        )
    return done.stdout


class Pairs:
    """What holds for every program that takes a content and gives a frame."""

    def frame_of(self, content, level):
        raise NotImplementedError

    def check(self, content, level="3"):
        frame = self.frame_of(content, level)
        # assertEqual() would print megabytes.
        self.assertTrue(decode(frame) == content, "content differs")
        return frame

    def test_frame__nothing__decodes(self):
        self.check(b"")

    def test_frame__one_byte__decodes(self):
        self.check(b"x")

    def test_frame__10_mb_of_text__decodes_and_is_smaller(self):
        content = make_text(10 * MIB)
        frame = self.check(content)
        self.assertLess(len(frame), len(content) // 2)

    def test_frame__10_mb_of_noise__decodes_and_hardly_grows(self):
        content = make_random(10 * MIB)
        frame = self.check(content)
        self.assertLess(len(frame), len(content) + 8192)

    def test_frame__a_program_file__decodes_at_several_levels(self):
        content = read_file(os.path.realpath("/usr/bin/python3"))
        for level in ("-5", "1", "9"):
            with self.subTest(level=level):
                self.check(content, level)

    def test_frame__level_19__decodes(self):
        self.check(make_text(3 * MIB), "19")


class OneCall(Pairs, unittest.TestCase):
    def frame_of(self, content, level):
        path = os.path.join(work, "one_call.in")
        write_file(path, content)
        return run("one_call", path, level)

    def test_frame__any__declares_its_size(self):
        frame = self.frame_of(make_text(300000), "3")
        self.assertEqual(zstandard.frame_content_size(frame), 300000)

    def test_no_such_file__is_an_error(self):
        with self.assertRaisesRegex(AssertionError, "exit code 1\n.*no-such"):
            run("one_call", os.path.join(work, "no-such"))


class ByHand(Pairs, unittest.TestCase):
    def frame_of(self, content, level):
        return run("by_hand", level, content=content)

    def test_flush__input_pauses__all_so_far_is_decodable(self):
        pieces = [b"one\n", make_text(70000), b"", b"three\n" * 3]
        decoder = zstandard.ZstdDecompressor().decompressobj()
        with subprocess.Popen(
            [program("by_hand")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            for piece in pieces:
                child.stdin.write(piece)
                child.stdin.flush()
                decoded = b""
                while len(decoded) < len(piece):
                    decoded += decoder.decompress(read_some(child.stdout))
                self.assertTrue(decoded == piece, "content differs")
            child.stdin.close()
            rest = child.stdout.read()
            self.assertEqual(decoder.decompress(rest), b"")
            self.assertTrue(decoder.eof, "the frame has no end")
            self.assertEqual(child.wait(LIMIT), 0)


def read_some(pipe):
    """What a pipe has, at least a byte."""
    if not select.select([pipe], [], [], LIMIT)[0]:
        raise AssertionError("no output within %d s" % LIMIT)
    some = os.read(pipe.fileno(), 1 << 16)
    if not some:
        raise AssertionError("output ended early")
    return some


# ---------------------------------------------------------------------------
# Servers
# ---------------------------------------------------------------------------


class Answer:
    def __init__(self, head, body):
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {}
        for line in lines[1:]:
            if ":" in line:
                name, value = line.split(":", 1)
                self.headers[name.lower()] = value.strip()
        self.body = body


def use_two_cpus():
    """The servers have a worker for each CPU, and memory for each worker; what
    is asserted of it should not depend on the machine."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


class Server:
    """A running server; stop() asserts that it ends well."""

    def __init__(self, name, root, level):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program(name), root, "0", level],
            stdout=subprocess.PIPE,
            stderr=self.log,
            preexec_fn=use_two_cpus,
        )
        first = b""
        while not first.endswith(b"\n"):
            first += read_some(self.process.stdout)
        self.url = first.decode().strip().rstrip("/")
        self.port = int(self.url.rsplit(":", 1)[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "none, it hangs"
        self.process.stdout.close()
        self.log.seek(0)
        log = self.log.read().decode(errors="replace")
        self.log.close()
        if code != 0:
            raise AssertionError("exit code %s after SIGTERM\n%s" % (code, log))

    def fetch(self, path, *options):
        """By curl, as it comes: curl is not asked to decode."""
        with tempfile.NamedTemporaryFile() as head:
            done = subprocess.run(
                ["curl", "-sS", "--path-as-is", "--max-time", str(LIMIT)]
                + ["-D", head.name, *options, self.url + path],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=2 * LIMIT,
            )
            if done.returncode != 0:
                raise AssertionError("curl: " + done.stderr.decode())
            return Answer(head.read(), done.stdout)

    def counters(self):
        lines = self.fetch("/status").body.decode().splitlines()
        return {name: int(n) for name, n in (line.split() for line in lines)}

    def open_files(self, root):
        """Files below root that the server has open now."""
        links = "/proc/%d/fd" % self.process.pid
        found = []
        for fd in os.listdir(links):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(os.path.join(links, fd)))
        return [path for path in found if path.startswith(root + "/")]

    def wait_for(self, holds):
        """Asks for the counters until holds(counters)."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            now = self.counters()
            if holds(now):
                return now
        raise AssertionError("not within %d s: %s" % (LIMIT, now))

    def connect(self, path, receive_bytes=None):
        """A bare client that has sent its request and read nothing."""
        client = socket.socket()
        client.settimeout(LIMIT)
        if receive_bytes is not None:
            client.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes
            )
        client.connect(("127.0.0.1", self.port))
        client.sendall(
            b"GET %s HTTP/1.1\r\nHost: test\r\nAccept-Encoding: zstd\r\n\r\n"
            % path.encode()
        )
        return client


@contextlib.contextmanager
def running(name, root, level="3"):
    server = Server(name, root, level)
    try:
        yield server
    finally:
        server.stop()


def read_head(stream):
    lines = []
    while True:
        line = stream.readline()
        if not line:
            raise AssertionError("connection ended in the header")
        if line == b"\r\n":
            return Answer(b"".join(lines), None)
        lines.append(line)


def read_chunk(stream):
    """The next chunk of a chunked body; b"" is its end."""
    line = stream.readline()
    if not re.fullmatch(rb"[0-9a-fA-F]+\r\n", line):
        raise AssertionError("not a chunk: %r" % line)
    chunk = stream.read(int(line, 16))
    if stream.read(2) != b"\r\n":
        raise AssertionError("chunk is cut off")
    return chunk


def reset(client):
    """Closes so that the server gets an error, not an end of file."""
    at_once = struct.pack("ii", 1, 0)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    client.close()


class StaticFiles:
    """What holds for both servers. The class has the server's `name`."""

    FILES = {
        "empty.bin": b"",
        "one.txt": b"1",
        "page.html": b"<p>hello</p>\n" * 20,
        "text.js": make_text(10 * MIB),
        "noise.bin": make_random(3 * MIB),
        "deep/er/name with space.json": b"{}",
        "dots..in..name.txt": b"served",
    }

    @classmethod
    def setUpClass(cls):
        cls.root = os.path.join(work, cls.name, "root")
        for path, content in cls.FILES.items():
            write_file(os.path.join(cls.root, path), content)
        write_file(os.path.join(work, cls.name, "secret"), b"secret")
        os.mkfifo(os.path.join(cls.root, "fifo"))
        cls.server = Server(cls.name, cls.root, "3")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def check(self, server, path, *options):
        answer = server.fetch("/" + path.replace(" ", "%20"), *ZSTD, *options)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers.get("content-encoding"), "zstd")
        same = decode(answer.body) == self.FILES[path]
        self.assertTrue(same, "content differs: " + path)
        return answer

    def test_fetch__each_file__is_the_file(self):
        for path in self.FILES:
            with self.subTest(path=path):
                self.check(self.server, path)

    def test_fetch__zstd__headers_say_so(self):
        headers = self.check(self.server, "page.html").headers
        self.assertEqual(headers["content-type"], "text/html")
        self.assertEqual(headers["vary"], "Accept-Encoding")
        self.assertEqual(headers["transfer-encoding"], "chunked")
        self.assertNotIn("content-length", headers)

    def test_fetch__client_without_zstd__gets_the_file_as_it_is(self):
        values = [None, "gzip, br", "zstd;q=0", "zstd ; q=0.000, gzip", "zstdx"]
        for value in values:
            options = ["-H", "Accept-Encoding: %s" % value] if value else []
            for path, content in self.FILES.items():
                with self.subTest(value=value, path=path):
                    url = "/" + path.replace(" ", "%20")
                    answer = self.server.fetch(url, *options)
                    self.assertEqual(answer.status, 200)
                    self.assertNotIn("content-encoding", answer.headers)
                    self.assertEqual(answer.headers["vary"], "Accept-Encoding")
                    self.assertEqual(
                        answer.headers["content-length"], str(len(content))
                    )
                    self.assertTrue(answer.body == content, "content differs")

    def test_fetch__zstd_in_a_list__is_found(self):
        for value in ("gzip, deflate, br, zstd", "br;q=1,ZSTD;q=0.5", "zstd "):
            with self.subTest(value=value):
                answer = self.server.fetch(
                    "/page.html", "-H", "Accept-Encoding: " + value
                )
                self.assertEqual(answer.headers.get("content-encoding"), "zstd")

    def test_head__zstd_or_not__has_the_headers_and_no_body(self):
        for options, encoding in ((ZSTD, "zstd"), ((), None)):
            answer = self.server.fetch("/text.js", "--head", *options)
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.headers.get("content-encoding"), encoding)
            self.assertEqual(answer.headers["vary"], "Accept-Encoding")

    def test_http_1_0__zstd__ends_with_the_connection(self):
        for extra in ((), ("-H", "Connection: keep-alive")):
            answer = self.check(self.server, "text.js", "--http1.0", *extra)
            self.assertNotIn("transfer-encoding", answer.headers)
            self.assertNotIn("content-length", answer.headers)

    def test_keep_alive__four_files__one_connection(self):
        paths = ["page.html", "empty.bin", "text.js", "one.txt"]
        urls = [self.server.url + "/" + path for path in paths]
        done = subprocess.run(
            ["curl", "-sS", "--max-time", str(LIMIT), *ZSTD]
            + ["-w", "%{stderr}%{num_connects} ", *urls],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=2 * LIMIT,
        )
        self.assertEqual(done.stderr, b"1 0 0 0 ")
        # zstd decodes frames that follow each other to contents that do.
        expected = b"".join(self.FILES[path] for path in paths)
        self.assertTrue(decode(done.stdout) == expected, "content differs")

    def test_not_a_file__is_not_found(self):
        for path in ("/", "/deep", "/no-such", "/one.txt/", "/fifo", "/%00"):
            with self.subTest(path=path):
                answer = self.server.fetch(path, *ZSTD)
                self.assertIn(answer.status, (400, 404))
                self.assertNotIn("content-encoding", answer.headers)

    def test_path_out_of_the_directory__is_refused(self):
        outside = os.path.join(work, self.name, "secret")
        paths = ["/../secret", "/%2e%2e/secret", "/deep/../../secret"]
        paths += ["/..%2fsecret", "/deep/er/../../../secret", "/" + outside]
        paths += ["//etc/passwd", "/../root/../secret", "/.."]
        for path in paths:
            with self.subTest(path=path):
                answer = self.server.fetch(path)
                self.assertIn(answer.status, (400, 404))
                self.assertNotIn(b"secret", answer.body)

    def test_post__is_refused(self):
        answer = self.server.fetch("/one.txt", "-d", "x")
        self.assertIn(answer.status, (405, 413, 501))

    def test_parallel__more_clients_than_workers__all_get_their_file(self):
        paths = list(self.FILES) * 3
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda path: self.check(self.server, path), paths))
        self.check_idle(self.server)
        now = self.server.counters()
        self.assertLessEqual(now["encoders_live"], now["encoders_limit"])

    def test_abort__in_the_middle_at_level_19__frees_the_stream(self):
        content = make_text(5 * MIB, seed=3) * 10
        write_file(os.path.join(self.root, "big.txt"), content)
        with running(self.name, self.root, "19") as server:
            for i in range(20):
                client = server.connect("/big.txt")
                if i % 4 != 0:  # every fourth goes before it got a byte
                    with client.makefile("rb") as stream:
                        self.assertEqual(read_head(stream).status, 200)
                        self.assertNotEqual(read_chunk(stream), b"")
                (reset if i % 2 else socket.socket.close)(client)
            self.check_idle(server)
            self.check(server, "page.html")

    def test_abort__many_at_once__frees_the_streams(self):
        content = make_text(5 * MIB, seed=3) * 10
        write_file(os.path.join(self.root, "big.txt"), content)
        with running(self.name, self.root, "19") as server:
            clients = [server.connect("/big.txt") for _ in range(20)]
            select.select(clients, [], [], LIMIT)
            server.wait_for(lambda now: now["streams_open"] == 20)
            for client in clients:
                reset(client)
            self.check_idle(server)
            self.check(server, "page.html")

    def check_idle(self, server):
        server.wait_for(
            lambda now: now["streams_open"] == 0
            and now["jobs_out"] == 0
            and not server.open_files(self.root)
        )

    def test_slow_reader__stops_compression__until_it_reads(self):
        content = make_random(96 * MIB, seed=4)
        write_file(os.path.join(self.root, "big.bin"), content)
        with running(self.name, self.root, "1") as server:
            client = server.connect("/big.bin", receive_bytes=64 << 10)
            with client, client.makefile("rb") as stream:
                self.assertEqual(read_head(stream).status, 200)
                stopped = self.wait_until_stopped(server)
                self.assertLess(stopped["bytes_in"], 48 * MIB)
                self.assertLess(stopped["bytes"], 64 * MIB)
                frame = b"".join(iter(lambda: read_chunk(stream), b""))
            self.assertTrue(decode(frame) == content, "content differs")
            self.check_idle(server)

    def wait_until_stopped(self, server):
        """No job is out, and nothing changes from one look to the next."""
        looks = 0
        last = None
        while looks < 50:
            now = server.wait_for(lambda now: now["jobs_out"] == 0)
            looks = looks + 1 if now == last else 0
            last = now
        self.assertEqual(last["streams_open"], 1)
        return last

    def test_sigterm__downloads_running__ends_well(self):
        content = make_text(5 * MIB, seed=3) * 10
        write_file(os.path.join(self.root, "big.txt"), content)
        with contextlib.ExitStack() as stack:
            with running(self.name, self.root, "19") as server:
                for _ in range(4):
                    client = stack.enter_context(server.connect("/big.txt"))
                    stream = stack.enter_context(client.makefile("rb"))
                    self.assertEqual(read_head(stream).status, 200)
                    self.assertNotEqual(read_chunk(stream), b"")

    def test_file_that_shrinks__response_is_visibly_broken(self):
        path = os.path.join(self.root, "shrinks.bin")
        write_file(path, make_random(96 * MIB, seed=4))
        with running(self.name, self.root, "1") as server:
            client = server.connect("/shrinks.bin", receive_bytes=64 << 10)
            with client, client.makefile("rb") as stream:
                self.assertEqual(read_head(stream).status, 200)
                self.wait_until_stopped(server)
                os.truncate(path, 48 * MIB)
                with self.assertRaises((AssertionError, ConnectionError)):
                    while read_chunk(stream) != b"":
                        pass
            self.check_idle(server)


class MicrohttpdServer(StaticFiles, unittest.TestCase):
    name = "microhttpd_server"


class LibeventServer(StaticFiles, unittest.TestCase):
    name = "libevent_server"

    def read_events(self, stream, count, next_text):
        """Takes chunks; each must give whole events, decodable at once."""
        ids = []
        while len(ids) < count:
            text = next_text(read_chunk(stream)).decode()
            self.assertRegex(text, r"\A(id: \d+\ndata: {.*}\n\n)+\Z")
            ids += [int(n) for n in re.findall(r"id: (\d+)", text)]
        # The server drops an event for whom the last one is still under way.
        self.assertEqual(ids, sorted(set(ids)))

    def open_events(self, server, stack):
        client = stack.enter_context(server.connect("/events"))
        stream = stack.enter_context(client.makefile("rb"))
        headers = read_head(stream).headers
        self.assertEqual(headers["content-type"], "text/event-stream")
        self.assertEqual(headers["content-encoding"], "zstd")
        self.assertEqual(headers["vary"], "Accept-Encoding")
        self.assertEqual(headers["transfer-encoding"], "chunked")
        return stream

    def test_events__zstd__each_is_decodable_as_it_arrives(self):
        with contextlib.ExitStack() as stack:
            stream = self.open_events(self.server, stack)
            decoder = zstandard.ZstdDecompressor().decompressobj()
            self.read_events(stream, 5, decoder.decompress)
        self.check_idle(self.server)

    def test_events__client_without_zstd__gets_them_as_they_are(self):
        address = ("127.0.0.1", self.server.port)
        with socket.create_connection(address, LIMIT) as client:
            client.sendall(b"GET /events HTTP/1.1\r\nHost: test\r\n\r\n")
            with client.makefile("rb") as stream:
                self.assertNotIn("content-encoding", read_head(stream).headers)
                self.read_events(stream, 3, lambda chunk: chunk)

    def test_events__head__has_the_headers_and_no_stream(self):
        answer = self.server.fetch("/events", "--head", *ZSTD)
        self.assertEqual(answer.headers["content-encoding"], "zstd")
        self.check_idle(self.server)

    def test_events__all_workers_busy__still_come(self):
        content = make_text(5 * MIB, seed=3) * 10
        write_file(os.path.join(self.root, "big.txt"), content)
        with running(self.name, self.root, "19") as server:
            with contextlib.ExitStack() as stack:
                streams = [self.open_events(server, stack) for _ in range(8)]
                for _ in range(6):
                    stack.enter_context(server.connect("/big.txt"))
                for stream in streams:
                    decoder = zstandard.ZstdDecompressor().decompressobj()
                    text = b""
                    while text.count(b"\n\n") < 3:
                        text += decoder.decompress(read_chunk(stream))
            self.check_idle(server)

    def test_sigterm__events_running__ends_well(self):
        with contextlib.ExitStack() as stack:
            with running(self.name, self.root) as server:
                for _ in range(3):
                    stream = self.open_events(server, stack)
                    self.assertNotEqual(read_chunk(stream), b"")


# ---------------------------------------------------------------------------

CASES = {
    "one_call": OneCall,
    "by_hand": ByHand,
    "libevent_server": LibeventServer,
    "microhttpd_server": MicrohttpdServer,
}


def main():
    global folder, work
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder = sys.argv[1]
    suite = unittest.TestSuite()
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    for name in sys.argv[2:]:
        suite.addTests(load(CASES[name]))
    with tempfile.TemporaryDirectory() as work:
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
