#!/usr/bin/python3
"""The load client of bench/nginx/load against a server that answers as told.

    test_load.py PROGRAM [unittest's arguments...]

A server that is to be late is held by what the client does, not by a time.
"""

import csv
import json
import mmap
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LIMIT = 60  # seconds after which the client counts as hanging

program = os.path.realpath(sys.argv.pop(1))

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


def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def accept(server):
    while True:
        try:
            conn, _ = server.listener.accept()
        except OSError:
            return
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start(server.serve, conn)


def stop_accepting(server):
    """Closed while its thread waits, the socket would listen on, and its
    number could be that of the next server's."""
    server.listener.shutdown(socket.SHUT_RDWR)
    server.accepting.join()
    server.listener.close()


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
        self.accepting = start(accept, self)

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
        stop_accepting(self)


def free_port():
    """None of those that the system gives to connections meanwhile."""
    while True:
        port = random.randrange(15000, 32000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port


class Proxy:
    """Hands requests of event streams on to the client's own origin, and its
    responses back, through relay(proxy, number, conn, origin)."""

    def __init__(self, relay):
        self.relay = relay
        self.lock = threading.Condition()
        self.streams = 0
        self.beginning = 0
        self.most_beginning = 0
        self.bodies = {}  # by stream, what the origin wrote
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.origin_port = free_port()
        self.accepting = start(accept, self)

    def serve(self, conn):
        with conn:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                data = conn.recv(65536)
                if not data:
                    return
                head += data
            with self.lock:
                number = self.streams
                self.streams += 1
                self.beginning += 1
                self.most_beginning = max(self.most_beginning, self.beginning)
                self.lock.notify_all()
            try:
                self.relay(self, number, conn, head)
            except OSError:
                pass

    def begun(self):
        with self.lock:
            self.beginning -= 1

    def ask(self, head):
        """A connection to the origin that has got this request."""
        origin = socket.create_connection(("127.0.0.1", self.origin_port))
        origin.sendall(head)
        return origin

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop_accepting(self)


def pieces_of(origin):
    while data := origin.recv(65536):
        yield data


def relay_raw(proxy, _number, conn, head):
    """As it is, chunks and all."""
    with proxy.ask(head) as origin:
        for number, data in enumerate(pieces_of(origin)):
            if number == 0:
                proxy.begun()
            conn.sendall(data)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Recoder:
    """Asks the origin by HTTP/1.0, whose response then ends with the
    connection, and makes chunks of it, under a head of its own."""

    def __init__(self, coding=None, start=b"", change=None):
        self.coding = coding
        self.start = start  # before the first event
        self.change = change or (lambda number, data, proxy: data)

    def __call__(self, proxy, number, conn, head):
        with proxy.ask(head.replace(b"HTTP/1.1", b"HTTP/1.0")) as origin:
            data = b""
            pieces = pieces_of(origin)
            while b"\r\n\r\n" not in data:
                data += next(pieces)
            data = data.partition(b"\r\n\r\n")[2]
            proxy.begun()
            conn.sendall(chunked(self.start + data, end=b"", headers=[
                "Content-Encoding: " + self.coding] if self.coding else []))
            proxy.bodies[number] = data
            for count, data in enumerate(pieces):
                proxy.bodies[number] += data
                data = self.change((number, count), data, proxy)
                if data is None:
                    return
                if data:
                    conn.sendall(chunk(data))
            conn.sendall(b"0\r\n\r\n")


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

    def load(self, server, *args, status=0, prefix=()):
        """The client's report."""
        done = self.run_client("--json", self.json, "--samples", self.samples,
                               *args, server.address, prefix=prefix)
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
                if entry.isdigit() and exe_of(entry) == program:
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

    # Streams of events

    def events(self, relay, *args, status=0, streams=10, prefix=()):
        """The proxy, and the report of some events through it."""
        with Proxy(relay) as proxy:
            report = self.load(
                proxy, "--event-streams", streams, "--event-path", "/ev",
                "--event-origin", proxy.origin_port, "--seconds", 1, *args,
                status=status, prefix=prefix)
        return proxy, report["events"]

    def check_complete(self, events, streams, sent, failed=0):
        self.assertEqual(events["streams"], streams)
        self.assertEqual(events["begun"], streams)
        self.assertEqual(events["completed"], streams - failed)
        self.assertEqual(events["failed"], failed, events["first_failure"])
        self.assertEqual(events["sent"], sent)
        self.assertEqual(events["arrived"], sent)
        self.assertEqual(events["latency_ms"]["count"], sent)
        self.assertEqual(events["sent_late_ms"]["count"], sent)

    def test_events__chunked__all_arrive(self):
        proxy, events = self.events(relay_raw, "--event-rate", 20)
        self.check_complete(events, 10, 10 * 20)
        self.assertEqual(proxy.streams, 10)
        self.assertEqual(events["body_bytes"], 10 * 20 * 200)
        self.assertGreater(events["wakeups"], 0)
        self.assertGreater(events["latency_ms"]["p50"], 0)

    def test_events__until_the_connection_ends__all_arrive(self):
        proxy, events = self.events(Recoder(), "--event-rate", 20,
                                    "--event-bytes", 1000)
        self.check_complete(events, 10, 10 * 20)
        self.assertEqual(events["body_bytes"], 10 * 20 * 1000)

    def test_events__coded__arrive_with_the_next_bytes(self):
        relay = Recoder("zstd", ZSTD_MAGIC + b"x")
        proxy, events = self.events(relay, "--event-rate", 20,
                                    "--event-encoding", "zstd")
        self.check_complete(events, 10, 10 * 20)
        self.assertEqual(events["encoding"], "zstd")
        self.assertEqual(events["body_bytes"], 10 * 20 * 200)

    def test_events__are_different_ones_of_their_size(self):
        proxy, events = self.events(Recoder(), "--event-rate", 5,
                                    "--event-bytes", 333, streams=3)
        self.check_complete(events, 3, 3 * 5)
        seen = set()
        for body in proxy.bodies.values():
            self.assertEqual(len(body), (1 + 5) * 333)
            for i in range(0, len(body), 333):
                event = body[i:i + 333].decode()
                self.assertRegex(event, r"\Aid: \d+\ndata: .*\n\n\Z")
                data = json.loads(event.split("data: ")[1])
                seen.add((data["stream"], data["event"]))
        self.assertEqual(seen, {(s, n) for s in range(3) for n in range(6)})

    def test_events__of_the_warm_up__are_not_counted(self):
        proxy, events = self.events(Recoder(), "--event-rate", 20,
                                    "--warmup", 0.5, streams=2)
        # those that were due in the warm-up but written after it are
        self.assertGreaterEqual(events["sent"], 2 * 20)
        self.assertEqual(events["arrived"], events["sent"])
        written = sum(len(body) for body in proxy.bodies.values()) // 200
        self.assertEqual(written, 2 * (1 + 10 + 20))
        self.assertLess(events["sent"], 2 * 30)

    def test_events__that_arrive_together__are_told(self):
        held = {}

        def hold(key, data, _proxy):
            data = held.get(key[0], b"") + data
            pairs = len(data) // 400 * 400
            held[key[0]] = data[pairs:]
            return data[:pairs]

        # held back, and coded so that they cannot be told apart
        relay = Recoder("zstd", ZSTD_MAGIC + b"x", hold)
        proxy, events = self.events(relay, "--event-rate", 20,
                                    "--event-encoding", "zstd", streams=4)
        self.check_complete(events, 4, 4 * 20)
        self.assertGreaterEqual(events["arrived_together"], 4 * 10)

    def test_events__begin_a_few_at_a_time(self):
        proxy, events = self.events(relay_raw, "--event-rate", 1, streams=300)
        self.check_complete(events, 300, 300)
        self.assertLessEqual(proxy.most_beginning, 64)
        self.assertEqual(proxy.streams, 300)

    def test_events__need_more_files_than_there_may_be__raise_that(self):
        prefix = ["prlimit", "--nofile=64:4096"]
        proxy, events = self.events(relay_raw, streams=50, prefix=prefix)
        self.check_complete(events, 50, 50)

    def test_events__need_more_files_than_can_be__is_an_error(self):
        done = self.run_client(
            "--event-streams", 50, "--event-path", "/", "--event-origin", 1,
            "127.0.0.1:1",
            prefix=[*without("sys_resource"), "prlimit", "--nofile=64:64"])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "cannot have 1[0-9][0-9] open files: "
                                      "Operation not permitted.* is 64")

    def test_events__beside_small_requests__are_both_counted(self):
        def relay(proxy, number, conn, head):
            if not head.startswith(b"GET /small "):
                return relay_raw(proxy, number, conn, head)
            conn.sendall(answer(headers=["Connection: close"]))

        with Proxy(relay) as proxy:
            report = self.load(
                proxy, "--event-streams", 5, "--event-path", "/ev",
                "--event-origin", proxy.origin_port, "--event-rate", 10,
                "--small", "/small", "--small-rate", 50, "--seconds", 1)
        self.check_complete(report["events"], 5, 50)
        self.assertEqual(report["small"]["answered"], 50)

    def check_wrong_events(self, fault, words, relay, *args, failed=10):
        proxy, events = self.events(relay, *args, status=1)
        self.assertEqual(events["failed"], failed)
        self.assertEqual(events["failed_" + fault], failed,
                         events["first_failure"])
        self.assertIn(words, events["first_failure"])
        return proxy, events

    def test_events__that_begin_wrongly__are_named(self):
        def refuse(_proxy, _number, conn, _head):
            conn.sendall(answer(status="404 Not Found"))

        def nameless(proxy, number, conn, head):
            relay_raw(proxy, number, conn, head.replace(b"X-Stream", b"X-No"))

        zstd = ["--event-encoding", "zstd"]
        for fault, words, relay, *args in (
                ("status", "status 404", refuse),
                ("status", "status 400", nameless),
                ("encoding", '"zstd"', Recoder("zstd")),
                ("encoding", '""', relay_raw, *zstd),
                ("encoding", "not begin", Recoder("zstd"), *zstd),
                ("closed", "ended", lambda *_: None)):
            with self.subTest(words):
                _, events = self.check_wrong_events(fault, words, relay, *args)
                self.assertEqual(events["completed"], 0)
                self.assertEqual(events["sent"], 0)
                self.assertEqual(events["refused"],
                                 10 if relay is nameless else 0)

    def test_events__that_end_early__are_told_and_the_others_go_on(self):
        def end_third(key, data, _proxy):
            return None if key == (3, 5) else data

        _, events = self.check_wrong_events(
            "closed", "connection ended", Recoder(change=end_third),
            "--event-rate", 20, failed=1)
        self.assertEqual(events["begun"], 10)
        self.assertEqual(events["completed"], 9)
        self.assertGreaterEqual(events["arrived"], 9 * 20 + 5)
        self.assertLess(events["arrived"], events["sent"])
        # with what was waited for in vain
        self.assertEqual(events["latency_ms"]["count"], events["sent"])

    def test_events__whose_response_ends_early__are_told(self):
        def relay(proxy, _number, conn, head):
            with proxy.ask(head) as origin:
                conn.sendall(origin.recv(65536) + b"0\r\n\r\n")
                conn.recv(1)

        _, events = self.check_wrong_events("closed", "not by the origin",
                                            relay)
        self.assertEqual(events["completed"], 0)

    def test_events__that_do_not_arrive__time_out(self):
        proxy, events = self.check_wrong_events(
            "timeout", "an event did not arrive",
            Recoder(change=lambda *_: b""), "--event-rate", 5,
            "--timeout", 0.2)
        self.assertEqual(events["begun"], 10)
        self.assertEqual(events["arrived"], 0)
        self.assertGreater(events["sent"], 0)
        self.assertGreaterEqual(events["latency_ms"]["max"], 200)

    def test_events__with_bytes_too_many__are_wrong(self):
        def add(key, data, _proxy):
            return data + b"x" if key == (2, 0) else data

        self.check_wrong_events("length", "2201 bytes of 2200",
                                Recoder(change=add), "--event-rate", 10,
                                failed=1)

    def test_events__of_no_server__end_the_run(self):
        server, origin = free_port(), free_port()
        done = self.run_client("--event-streams", 200, "--event-path", "/",
                               "--event-origin", origin,
                               "127.0.0.1:%d" % server)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Connection refused", done.stdout)
        self.assertIn("no connection is accepted", done.stderr)

    def test_origin__whose_port_is_taken__is_an_error(self):
        with Server(lambda *_: answer()) as server:
            port = server.address.split(":")[1]
            done = self.run_client("--event-streams", 1, "--event-path", "/",
                                   "--event-origin", port, server.address)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--event-origin: 127.0.0.1:%s: Address already" % port,
                      done.stderr)

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
                (["--event-rate", "2", here], "--event-rate needs --event-st"),
                (["--event-streams", "2", here], "needs --event-path PATH"),
                (["--event-streams", "2", "--event-path", "/", here],
                 "needs --event-origin PORT"),
                (["--event-streams", "0", here], 'event-streams: "0"'),
                (["--event-path", "ev", here], 'event-path: "ev"'),
                (["--event-origin", "70000", here], 'event-origin: "70000"'),
                (["--event-rate", "-1", here], 'event-rate: "-1"'),
                (["--event-bytes", "12", here], 'event-bytes: "12"'),
                (["--event-encoding", "", here], 'event-encoding: ""'),
                (["--small", "/", "--bogus", here], "--bogus")):
            with self.subTest(args):
                done = self.run_client(*args)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
