#!/usr/bin/python3
"""The load client of bench/nginx/load against a server that answers as told.

    test_load.py PROGRAM [unittest's arguments...]

A server that is to be late is held by what the client does, not by a time.
"""

import csv
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LIMIT = 60  # seconds after which the client counts as hanging

program = os.path.abspath(sys.argv.pop(1))

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def without(capability):
    """What a command begins with that must not have this right."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--inh-caps=-" + capability,
            "--bounding-set=-" + capability]


def exe_of(pid):
    try:
        return os.path.realpath(os.readlink("/proc/%s/exe" % pid))
    except OSError:
        return None


def answer(body=b"hello", status="200 OK", headers=()):
    lines = ["HTTP/1.1 " + status, "Content-Length: %d" % len(body), *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*chunks, headers=(), end=b"0\r\n\r\n"):
    lines = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *headers]
    body = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body + end


def hgrm_rows(path):
    """Value, part of all, and count up to it, of each line."""
    with open(path) as f:
        lines = [line.split() for line in f if not line.startswith("#")]
    return [(float(line[0]), float(line[1]), int(line[2]))
            for line in lines if line and line[0][0].isdigit()]


class Server:
    """respond(number, path, server) gives the bytes of an answer, or None to
    close the connection; `number` counts requests from 0."""

    def __init__(self, respond, piece=None, close=False):
        self.respond = respond
        self.piece = piece  # bytes that are sent at a time
        self.close = close  # after each answer
        self.lock = threading.Condition()
        self.requests = 0
        self.open_now = 0
        self.open_most = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(conn,),
                             daemon=True).start()

    def serve(self, conn):
        with conn, conn.makefile("rb") as lines:
            try:
                while self.serve_one(conn, lines) and not self.close:
                    pass
            except OSError:
                pass

    def serve_one(self, conn, lines):
        first = lines.readline()
        if not first:
            return False
        while lines.readline().strip():
            pass
        with self.lock:
            number = self.requests
            self.requests += 1
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)
            self.lock.notify_all()
        data = self.respond(number, first.split()[1].decode(), self)
        with self.lock:
            self.open_now -= 1
        if data is None:
            return False
        step = self.piece or max(len(data), 1)
        for i in range(0, len(data), step):
            conn.sendall(data[i:i + step])
        return True

    def wait_for_open(self, count):
        """Until so many requests were unanswered at once."""
        with self.lock:
            self.lock.wait_for(lambda: self.open_most >= count, LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class LoadTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json = os.path.join(folder.name, "json")
        self.samples = os.path.join(folder.name, "csv")

    def run_client(self, *args, prefix=()):
        return subprocess.run([*prefix, program, *map(str, args)],
                              timeout=LIMIT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    def load(self, server, *args, status=0):
        """The client's report."""
        done = self.run_client("--json", self.json, "--samples", self.samples,
                               *args, server.address)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        with open(self.json) as f:
            return json.load(f)

    def rows(self, stream):
        with open(self.samples) as f:
            return [row for row in csv.DictReader(f)
                    if row["stream"] == stream]

    # What is an answer, and what is not

    def check_right(self, data, body_bytes, *args, **options):
        with Server(lambda *_: data, **options) as server:
            report = self.load(server, "--large", "/", "--large-count", 5,
                               *args)
            large = report["large"]
            self.assertEqual(large["answered"], 5)
            self.assertEqual(large["failed"], 0)
            self.assertEqual(large["body_bytes"], 5 * body_bytes)
            self.assertEqual(server.requests, 5)

    def test_answer__with_length__is_counted(self):
        self.check_right(answer(b"x" * 100000), 100000)

    def test_answer__byte_by_byte__is_the_same(self):
        self.check_right(answer(b"hello"), 5, piece=1)

    def test_answer__chunked__is_counted_without_framing(self):
        self.check_right(chunked(b"a" * 10, b"b" * 70000), 70010)

    def test_answer__chunked_byte_by_byte__is_the_same(self):
        self.check_right(chunked(b"ab", b"c" * 17,
                                 end=b"0\r\nTrailer: x\r\n\r\n"), 19, piece=1)

    def test_answer__empty__is_an_answer(self):
        self.check_right(answer(b""), 0)
        self.check_right(chunked(), 0)

    def test_answer__zstd_as_asked__is_right(self):
        self.check_right(answer(ZSTD_MAGIC + b"rest",
                                headers=["Content-Encoding: ZSTD"]), 8,
                         "--large-encoding", "zstd")

    def test_connection__closed_after_each__is_no_failure(self):
        self.check_right(answer(headers=["Connection: close"]), 5, close=True)

    def check_wrong(self, fault, words, data, *args):
        with Server(lambda *_: data) as server:
            report = self.load(server, "--large", "/", "--large-count", 3,
                               *args, status=1)
            large = report["large"]
            self.assertEqual(large["answered"], 0)
            self.assertEqual(large["failed"], 3)
            self.assertEqual(large["failed_" + fault], 3)
            self.assertIn(words, large["first_failure"])

    def test_failure__is_named(self):
        zstd = ["Content-Encoding: zstd"]
        right = ZSTD_MAGIC + b"x"
        for fault, words, data, *args in (
                ("status", "status 404", answer(status="404 Not Found")),
                ("status", "status 206", answer(status="206 Partial")),
                ("encoding", '"zstd"', answer(right, headers=zstd)),
                ("encoding", '""', answer(), "--large-encoding", "zstd"),
                ("encoding", '"gzip"',
                 answer(headers=["Content-Encoding: gzip"]),
                 "--large-encoding", "zstd"),
                ("encoding", "not begin", answer(b"plain", headers=zstd),
                 "--large-encoding", "zstd"),
                ("http", "HTTP/1.1", b"HTTP/1.0 200 OK\r\n\r\n"),
                ("http", "HTTP/1.1", b"nonsense\r\n\r\n"),
                ("http", "neither", b"HTTP/1.1 200 OK\r\n\r\nhello"),
                ("http", "framing",
                 b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello"),
                ("http", "longer", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 9000),
                ("http", "size of a chunk", chunked(b"x", end=b"g\r\n\r\n")),
                ("http", "longer than its size",
                 chunked(end=b"3\r\nabcd\r\n0\r\n\r\n")),
                ("http", "after the end", answer() + b"more"),
                ("closed", "ended", None)):
            with self.subTest(words):
                self.check_wrong(fault, words, data, *args)

    def check_cut(self, data):
        with Server(lambda *_: data, close=True) as server:
            report = self.load(server, "--large", "/", "--large-count", 1,
                               status=1)
            self.assertEqual(report["large"]["failed_closed"], 1)

    def test_answer__cut__is_a_failure(self):
        self.check_cut(answer(b"hello")[:-1])
        self.check_cut(chunked(b"hello", end=b""))
        self.check_cut(chunked(b"hello", end=b"0\r\n"))

    def test_answer__of_another_length__is_a_failure(self):
        with Server(lambda n, *_: answer(b"x" * (5 + (n == 2)))) as server:
            report = self.load(server, "--large", "/", "--large-count", 4,
                               status=1)
            self.assertEqual(report["large"]["failed_length"], 1)
            self.assertEqual(report["large"]["answered"], 3)

    def test_server__that_is_not_there__ends_the_run(self):
        with Server(lambda *_: answer()) as server:
            pass
        done = self.run_client("--small", "/", "--seconds", 30, server.address)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Connection refused", done.stdout)
        self.assertIn("no connection is accepted", done.stderr)

    def test_timeout__counts_as_failed_with_the_time_waited(self):
        def hang(_number, _path, server):
            server.wait_for_open(1000)

        with Server(hang) as server:
            report = self.load(server, "--large", "/", "--large-count", 2,
                               "--timeout", 0.2, status=1)
            with server.lock:  # let the threads go
                server.open_most = 1000
                server.lock.notify_all()
            large = report["large"]
            self.assertEqual(large["failed_timeout"], 2)
            self.assertEqual(large["last_byte_ms"]["count"], 2)
            self.assertGreaterEqual(large["last_byte_ms"]["p50"], 200)

    # When requests are sent

    def test_closed_loop__keeps_all_connections_busy_and_no_more(self):
        def respond(_number, _path, server):
            server.wait_for_open(6)
            return answer()

        with Server(respond) as server:
            self.load(server, "--large", "/", "--large-connections", 6,
                      "--large-count", 6)
            self.assertEqual(server.open_most, 6)
            self.assertEqual(server.requests, 6)

    def test_phase__sends_so_many_at_once(self):
        # none is answered before all of the phase are there
        def respond(number, _path, server):
            with server.lock:
                server.lock.wait_for(
                    lambda: server.requests >= number - number % 4 + 4, LIMIT)
            return answer()

        with Server(respond) as server:
            self.load(server, "--large", "/", "--large-rate", 40,
                      "--large-phase", 4, "--large-count", 12)
            self.assertEqual(server.requests, 12)
        due = [float(row["due_us"]) for row in self.rows("large")]
        self.assertEqual(sorted(due), 4 * [0] + 4 * [1e5] + 4 * [2e5])

    def test_stall__delays_all_that_were_due_in_it(self):
        # The first answers are held until both connections wait and so many
        # requests were due that most of them could not even be sent.
        stalls = []

        def respond(number, _path, server):
            if number < 2:
                server.wait_for_open(2)
                begin = time.monotonic()
                with server.lock:
                    server.lock.wait_for(lambda: len(stalls) == 2, 0.4)
                stalls.append(time.monotonic() - begin)
            return answer()

        with Server(respond) as server:
            report = self.load(server, "--small", "/", "--small-rate", 100,
                               "--small-connections", 2, "--small-count", 100,
                               "--seconds", 2)
        stall_us = 1e6 * min(stalls)
        rows = self.rows("small")
        late = [row for row in rows
                if float(row["last_byte_us"]) >= stall_us / 2]
        # 100 per second, of which those of half of the stall wait that long;
        # what was due before the counted time is not among the rows
        self.assertGreaterEqual(len(late), stall_us / 2e4 - 4)
        self.assertGreater(len(late), 2 + 2)
        self.assertGreater(report["small"]["most_waiting"], 10)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_realtime__holds_while_requests_are_sent(self):
        policies = []

        def respond(*_):
            for entry in os.listdir("/proc"):
                if entry.isdigit() and exe_of(entry) == os.path.realpath(program):
                    policies.append(os.sched_getscheduler(int(entry)))
            return answer()

        with Server(respond) as server:
            report = self.load(server, "--realtime", "--large", "/",
                               "--large-count", 1)
        self.assertTrue(report["generator"]["realtime"])
        self.assertIn(os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, policies)

    def test_realtime__without_the_right__is_refused(self):
        done = self.run_client("--realtime", "--small", "/", "127.0.0.1:1",
                               prefix=without("sys_nice"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("--realtime", done.stderr)
        self.assertIn("not permitted", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_slow_reader__reads_no_faster_than_told(self):
        with Server(lambda *_: answer(b"x" * 1000000)) as server:
            report = self.load(server, "--slow", "/", "--slow-connections", 3,
                               "--slow-rate", 1000, "--seconds", 2.2)
        slow = report["slow"]
        self.assertEqual(slow["begun"], 3)
        # at most one read of 501 bytes in each half second begun
        self.assertLessEqual(slow["received_bytes"], 3 * 5 * 501)
        self.assertGreater(slow["received_bytes"], 3 * 501)

    # What is reported

    def test_percentiles__are_samples(self):
        with Server(lambda *_: answer()) as server:
            report = self.load(server, "--large", "/", "--large-count", 250)
        times = sorted(float(row["last_byte_us"]) / 1e3
                       for row in self.rows("large"))
        self.assertEqual(len(times), 250)
        last = report["large"]["last_byte_ms"]
        # an HdrHistogram has three significant digits
        part = 1e-3 if report["percentiles"] == "hdrhistogram" else 0
        for name, rank in (("p50", 125), ("p90", 225), ("p99", 248),
                           ("p99.9", 250), ("max", 250)):
            self.assertAlmostEqual(last[name], times[rank - 1], msg=name,
                                   delta=1e-5 + part * times[rank - 1])
        mean = sum(times) / 250
        self.assertAlmostEqual(last["mean"], mean, delta=1e-5 + part * mean)

    def has_hdr(self):
        with Server(lambda *_: answer()) as server:
            report = self.load(server, "--large", "/", "--large-count", 1)
        return report["percentiles"] == "hdrhistogram"

    def test_hgrm__is_the_distribution_of_the_samples(self):
        if not self.has_hdr():
            self.skipTest("built without HdrHistogram")
        prefix = self.json + "-h"
        with Server(lambda *_: answer()) as server:
            self.load(server, "--large", "/", "--large-count", 250,
                      "--hgrm", prefix)
        for kind, column in (("first-byte", "first_byte_us"),
                             ("last-byte", "last_byte_us")):
            times = sorted(float(row[column]) / 1e3
                           for row in self.rows("large"))
            rows = hgrm_rows("%s-large-%s.hgrm" % (prefix, kind))
            self.assertEqual(rows[-1][2], 250)
            for value, _, count in rows:
                self.assertAlmostEqual(value, times[int(count) - 1],
                                       delta=1e-3 + 1e-3 * value)
        # all answers but the first went over a connection that was open
        rows = hgrm_rows(prefix + "-large-sent-late.hgrm")
        self.assertEqual(rows[-1][2], 249)

    def test_hgrm__of_nothing__has_no_samples(self):
        if not self.has_hdr():
            self.skipTest("built without HdrHistogram")
        prefix = self.json + "-h"
        with Server(lambda *_: answer(status="404 No")) as server:
            self.load(server, "--large", "/", "--large-count", 1,
                      "--hgrm", prefix, status=1)
        with open(prefix + "-large-last-byte.hgrm") as f:
            self.assertIn("Total count    =            0", f.read())

    def test_hgrm__that_cannot_be_written__ends_the_run(self):
        done = self.run_client("--small", "/", "--hgrm", "/not/there",
                               "127.0.0.1:1")
        if self.has_hdr():
            self.assertEqual(done.returncode, 1)
            self.assertIn("/not/there-small-first-byte.hgrm: No such file",
                          done.stderr)
        else:
            self.assertEqual(done.returncode, 2)
            self.assertIn("built without HdrHistogram", done.stderr)

    def test_process__is_looked_at(self):
        with Server(lambda *_: answer()) as server:
            report = self.load(server, "--large", "/", "--large-count", 3000,
                               "--pid", os.getpid())
        worker = report["worker"]
        self.assertEqual(worker["pid"], os.getpid())
        self.assertEqual(worker["threads"][0]["tid"], os.getpid())
        self.assertGreater(worker["total"]["cpu_s"], 0)
        self.assertGreater(worker["peak_rss_bytes"], 1 << 20)
        total = worker["total"]
        self.assertGreater(total["voluntary"], 0)
        # a server of Python does more than one tick of work for 3000 requests
        self.assertGreater(total["user_s"] + total["system_s"], 0)
        self.assertAlmostEqual(total["user_s"] + total["system_s"],
                               total["cpu_s"], delta=3 * worker["tick_s"])
        # at most, as a thread may have ended
        faults = sum(t["minor_faults"] for t in worker["threads"])
        self.assertLessEqual(faults, worker["minor_faults"])

    def test_process__that_touches_memory__has_page_faults(self):
        pages = []

        def respond(*_):
            pages.append(mmap.mmap(-1, 100 * mmap.PAGESIZE))
            for i in range(0, len(pages[-1]), mmap.PAGESIZE):
                pages[-1][i] = 1
            return answer()

        with Server(respond) as server:
            report = self.load(server, "--large", "/", "--large-count", 5,
                               "--pid", os.getpid())
        worker = report["worker"]
        self.assertGreaterEqual(worker["minor_faults"], 5 * 100)
        self.assertGreaterEqual(worker["total"]["minor_faults"], 5 * 100)
        self.assertEqual(worker["major_faults"],
                         worker["total"]["major_faults"])

    def test_process__that_is_not_there__is_an_error(self):
        child = subprocess.Popen(["true"])
        child.wait()
        done = self.run_client("--small", "/", "--pid", child.pid,
                               "127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("process %d" % child.pid, done.stderr)

    def test_arguments__that_are_wrong__are_named(self):
        here = "127.0.0.1:1"
        for args, words in (
                ([], "one server"),
                ([here], "nothing to send"),
                (["--small", "/", "localhost:1"], '"localhost:1"'),
                (["--small", "/", "127.0.0.1:70000"], '"127.0.0.1:70000"'),
                (["--small", "x", here], 'small: "x"'),
                (["--small-rate", "5", here], "--small-rate needs --small"),
                (["--small", "/", "--small-rate", "0", here], 'small-rate'),
                (["--small", "/", "--small-rate", "1e", here], '"1e"'),
                (["--small", "/", "--seconds", "nan", here], '"nan"'),
                (["--large", "/", "--large-phase", "4", here],
                 "--large-phase needs --large-rate"),
                (["--large", "/", "--large-rate", "4", "--large-phase", "4",
                  "--large-connections", "2", here], "more than"),
                (["--small", "/", "--small-encoding", "Zstd", here], "Zstd"),
                (["--small", "/", "--pid", "0", here], 'pid: "0"'),
                (["--small", "/", "--bogus", here], "--bogus")):
            with self.subTest(args):
                done = self.run_client(*args)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
