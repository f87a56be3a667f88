#!/usr/bin/python3
"""Runs the segzstd command as its users do.

    test_segzstd.py PROGRAM [unittest's arguments...]

What it writes is decompressed by the stock zstd command. Nothing here waits for
a time to pass: a command that is to be in the middle of its work is held there
by a FIFO that the test has not yet read, or not yet written to the end.
"""

import contextlib
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

LIMIT = 300  # seconds after which a command counts as hanging
KIB = 1 << 10
MIB = 1 << 20

PIPE_BYTES = 64 * KIB  # what a pipe of Linux holds
MANUAL = os.path.join(os.path.dirname(__file__), "../../tools/segzstd.1")

program = os.path.abspath(sys.argv.pop(1))


# ---------------------------------------------------------------------------
# Contents and files
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


def write_file(path, content=b""):
    with open(path, "wb") as f:
        f.write(content)


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def zstd(*args, **kwargs):
    return subprocess.run(
        ["zstd", *args], capture_output=True, timeout=LIMIT, **kwargs
    )


def decode(frames, *args):
    done = zstd("-dcq", *args, input=frames)
    if done.returncode != 0:
        raise AssertionError("zstd refuses the frame: %r" % done.stderr)
    return done.stdout


def describe(path):
    """What zstd -lv says of a file, as a dict."""
    done = zstd("-lv", path)
    lines = done.stdout.decode().splitlines()
    return dict(line.strip("# ").split(": ", 1) for line in lines if ": " in line)


def read_stats(stderr):
    """The lines of --stats, as a list of (file, dict)."""
    found = []
    for line in stderr.splitlines():
        match = re.fullmatch(r"(.*): ((?:\w+=-?\d+ ?)+)", line)
        if match:
            pairs = (pair.split("=") for pair in match[2].split())
            found.append((match[1], {key: int(n) for key, n in pairs}))
    return found


def is_sanitized():
    return bool(re.search(b"__[at]san_init", read_file(program)))


class Result:
    def __init__(self, status, stdout, stderr):
        self.status = status
        self.stdout = stdout
        self.stderr = stderr.decode()

    def lines(self):
        return self.stderr.splitlines()


class ToolTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="segzstd-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)

    def start(self, *args, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([program, *args], **kwargs)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    @staticmethod
    def finish(process, data=None):
        stdout, stderr = process.communicate(data, timeout=LIMIT)
        return Result(process.returncode, stdout or b"", stderr or b"")

    def run_it(self, *args, data=None, **kwargs):
        if data is not None:
            kwargs["stdin"] = subprocess.PIPE
        return self.finish(self.start(*args, **kwargs), data)

    def run_well(self, *args, **kwargs):
        result = self.run_it(*args, **kwargs)
        self.assertEqual(result.status, 0, result.stderr)
        return result

    @staticmethod
    def as_somebody():
        """Arguments to run the command as a user to whom permissions apply.
        It is copied here, since its own folder may be root's alone."""
        if os.geteuid() != 0:
            return {}
        shutil.copy(program, "command")
        os.chmod("command", 0o755)
        return {"user": 65534, "executable": os.path.abspath("command")}

    def assert_refused(self, result, fragment, status=1):
        """One line that says why."""
        self.assertEqual(result.status, status, result.stderr)
        self.assertEqual(len(result.lines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("segzstd: "), result.stderr)
        self.assertIn(fragment, result.stderr)

    def assert_decodes(self, path, content, *args):
        self.assertEqual(decode(read_file(path), *args), content)


# ---------------------------------------------------------------------------
# What it writes
# ---------------------------------------------------------------------------


class Frames(ToolTest):
    sizes = (0, 1, 131071, 131072, 131073, 10 * MIB)

    def test_file__any_size_and_level__decodes_and_declares_its_size(self):
        text = make_text(max(self.sizes))
        for size in self.sizes:
            write_file("a", text[:size])
            for level in ("--fast=3", "-1", "-3", "-9"):
                with self.subTest(size=size, level=level):
                    self.run_well("-qf", level, "a")
                    self.assert_decodes("a.zst", text[:size])
                    about = describe("a.zst")
                    self.assertEqual(about["Zstandard Frames"], "1")
                    self.assertIn("(%d B)" % size, about["Decompressed Size"])

    def test_file__highest_levels__decodes(self):
        text = make_text(1 * MIB)
        write_file("a", text)
        for level in (["-19"], ["--ultra", "-22"]):
            self.run_well("-qf", *level, "a")
            self.assert_decodes("a.zst", text)

    def test_pipe__any_size__decodes(self):
        text = make_text(max(self.sizes))
        for size in self.sizes:
            with self.subTest(size=size):
                result = self.run_well(data=text[:size])
                self.assertEqual(decode(result.stdout), text[:size])
                self.assertEqual(result.stderr, "")

    def test_stdin__a_file__is_read_from_its_offset_to_its_end(self):
        text = make_text(3 * MIB)
        write_file("a", text)
        with open("a", "rb", buffering=0) as f:
            f.seek(1 * MIB)
            result = self.run_well("-o", "b", stdin=f)
            self.assertEqual(f.tell(), 3 * MIB)
        self.assert_decodes("b", text[1 * MIB :])
        self.assertIn("(%d B)" % (2 * MIB), describe("b")["Decompressed Size"])
        self.assertEqual(result.status, 0)

    # Such a file says that it has 0 bytes.
    def test_file__of_proc__is_read_to_its_end(self):
        result = self.run_well("-c", "/proc/self/mountinfo")
        self.assertNotEqual(decode(result.stdout), b"")

    def test_fixed_segments__any_threads__same_bytes(self):
        text = make_text(3 * MIB + 5)
        write_file("a", text)
        frames = set()
        for threads in ("1", "2", "5"):
            result = self.run_well(
                "-c", "--stats", "-T", threads, "--segment-size", "256K", "a"
            )
            frames.add(result.stdout)
            stats = read_stats(result.stderr)[0][1]
            self.assertEqual(stats["segments"], 13)
            self.assertEqual(stats["threads"], int(threads))
        self.assertEqual(len(frames), 1)
        self.assertEqual(decode(frames.pop()), text)

    # An extent that was moved with all that had been compressed before made
    # the time quadratic, and nothing was given back until the end.
    def test_fixed_segments__long_pipe__memory_stays_small(self):
        read_end, write_end = os.pipe()
        with open("zeros", "wb") as f:
            f.truncate(256 * MIB)
        with subprocess.Popen(["cat", "zeros"], stdout=write_end) as cat:
            os.close(write_end)
            result = self.run_well(
                "-1", "-T2", "--segment-size=4M", "--stats", stdin=read_end
            )
            os.close(read_end)
            cat.wait()
        stats = read_stats(result.stderr)[0][1]
        self.assertEqual(stats["in"], 256 * MIB)
        self.assertLess(stats["memory_peak"], 128 * MIB)

    # More than 4 GiB; output that is kept until it is its turn, in chunks that
    # are nearly empty, once took as much memory as the file.
    def test_file__sparse_5_gib__memory_stays_small(self):
        size = 5 << 30
        with open("a", "wb") as f:
            f.truncate(size)
        result = self.run_well("-1", "-T2", "--stats", "-q", "a")
        stats = read_stats(result.stderr)[0][1]
        self.assertEqual(stats["in"], size)
        self.assertIn("(%d B)" % size, describe("a.zst")["Decompressed Size"])
        self.assertEqual(zstd("-tq", "a.zst").returncode, 0)
        self.assertLess(stats["memory_peak"], 256 * MIB)

    def test_checksum__is_there_unless_it_is_not_wanted(self):
        write_file("a", make_text(1000))
        for options, expected in (
            ([], "XXH64"),
            (["--no-check"], "None"),
            (["--no-check", "--check"], "XXH64"),
            (["--no-check", "-C"], "XXH64"),
        ):
            self.run_well("-qf", *options, "a")
            self.assertEqual(describe("a.zst")["Check"].split()[0], expected)

    def test_window_log__is_what_the_frame_declares(self):
        text = make_text(4 * MIB)
        write_file("a", text)
        for log, declared in (("10", 1 << 10), ("21", 1 << 21)):
            self.run_well("-qf", "-9", "--window-log", log, "a")
            self.assertIn("(%d B)" % declared, describe("a.zst")["Window Size"])
            self.assert_decodes("a.zst", text)

    def test_overlap__none__costs_size(self):
        text = make_text(200 * KIB) * 4
        write_file("a", text)
        sizes = []
        for overlap in ("0", "200K"):
            options = ["--segment-size=200K", "--overlap", overlap]
            result = self.run_well("-c", *options, "a")
            self.assertEqual(decode(result.stdout), text)
            sizes.append(len(result.stdout))
        self.assertGreater(sizes[0], 3 * sizes[1])


class Dictionary(ToolTest):
    def setUp(self):
        super().setUp()
        rnd = random.Random(3)
        os.mkdir("samples")
        for i in range(300):
            items = ['{"id":%d,"name":"user%d"}' % (i, rnd.randrange(10**6))]
            items += ['"flag%d":"value%d"' % (j, i % 7) for j in range(20)]
            write_file("samples/%d" % i, ",".join(items).encode())
        samples = ["samples/%d" % i for i in range(300)]
        done = zstd("-q", "--train", "--maxdict=4096", "-o", "dict", *samples)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.content = read_file("samples/7")

    def test_dict__decodes_with_it_only_and_is_smaller(self):
        plain = self.run_well("-c", "samples/7").stdout
        frame = self.run_well("-c", "-D", "dict", "samples/7").stdout
        self.assertLess(len(frame), len(plain) / 2)
        self.assertEqual(decode(frame, "-D", "dict"), self.content)
        self.assertNotEqual(zstd("-dcq", input=frame).returncode, 0)

    def test_dict__many_files_at_all_levels__decode(self):
        for level in ("--fast=2", "-1", "-9", "-19"):
            paths = ["samples/%d" % i for i in range(20)]
            self.run_well("-qf", level, "-D", "dict", *paths)
            for path in paths:
                self.assert_decodes(path + ".zst", read_file(path), "-D", "dict")

    def test_no_dict_id__frame_does_not_name_it(self):
        for options, named in (([], True), (["--no-dictID"], False)):
            self.run_well("-qf", "-D", "dict", *options, "samples/7")
            self.assertEqual(describe("samples/7.zst")["DictID"] != "0", named)
            self.assert_decodes("samples/7.zst", self.content, "-D", "dict")

    def test_dict__raw_content__decodes(self):
        write_file("raw", self.content * 2)
        frame = self.run_well("-c", "-D", "raw", "samples/8").stdout
        self.assertEqual(
            decode(frame, "-D", "raw"), read_file("samples/8")
        )

    def test_dict__not_to_be_had__status_of_zstd(self):
        write_file("empty")
        for path, fragment, status in (
            ("nothere", "nothere: No such file", 31),
            ("samples", "samples: is not a regular file", 32),
            ("empty", "empty: broken, or shorter", 32),
        ):
            result = self.run_it("-D", path, "samples/7")
            self.assert_refused(result, fragment, status)
            self.assertFalse(os.path.exists("samples/7.zst"))


# ---------------------------------------------------------------------------
# Options
# ---------------------------------------------------------------------------


class Options(ToolTest):
    def setUp(self):
        super().setUp()
        self.text = make_text(300 * KIB)
        write_file("a", self.text)

    def frame_of(self, *options):
        return self.run_well("-c", *options, "a").stdout

    def test_short_options__combined__as_zstd_reads_them(self):
        self.assertEqual(self.frame_of("-9"), self.frame_of("-T2q9"))
        self.run_well("-19fk", "a")
        self.assertEqual(read_file("a.zst"), self.frame_of("-19"))
        self.run_well("-qfo", "b", "a")
        self.run_well("-of", "b", "a", "-q")
        self.run_well("-q", "-o=c", "a")
        self.assertEqual(read_file("b"), read_file("c"))

    def test_options__after_files__count_for_all(self):
        self.run_well("a", "-o", "b", "-q", "-19")
        self.assertEqual(read_file("b"), self.frame_of("-19"))

    def test_values__attached_or_not__same(self):
        one = self.frame_of("--segment-size=64K")
        for options in (
            ("--segment-size", "64K"),
            ("--segment-size=64Ki",),
            ("--segment-size=64KB",),
            ("--segment-size=64KiB",),
            ("--segment-size=65536",),
            ("--segment-size=64K", "--threads=2"),
            ("--segment-size=64K", "--threads", "2"),
            ("--segment-size=64K", "-T", "2"),
            ("--segment-size=64K", "-T0"),
            ("--segment-size=64K", "--overlap=auto"),
        ):
            self.assertEqual(self.frame_of(*options), one, options)
        self.assertNotEqual(self.frame_of("--segment-size=auto"), one)

    def test_level__none_or_0__is_3(self):
        self.assertEqual(self.frame_of(), self.frame_of("-3"))
        self.assertEqual(self.frame_of("-0"), self.frame_of("-3"))
        stats = read_stats(self.run_well("-c", "--stats", "a").stderr)
        self.assertEqual(stats[0][1]["level"], 3)

    def test_level__last_one_counts(self):
        self.assertEqual(self.frame_of("-19", "-1"), self.frame_of("-1"))
        self.assertEqual(self.frame_of("-1", "--fast"), self.frame_of("--fast=1"))

    def test_level_above_19__without_ultra__19_and_a_warning(self):
        result = self.run_well("-20", "a", "-o", "b")
        self.assertIn("levels above 19 need --ultra; 19 is taken", result.stderr)
        self.assertEqual(read_file("b"), self.frame_of("-19"))
        result = self.run_well("-22", "-fq", "--ultra", "--stats", "a")
        self.assertEqual(read_stats(result.stderr)[0][1]["level"], 22)

    def test_wrong_options__one_line_that_names_them(self):
        for options, fragment in (
            (["-99"], "-99: the highest level is 22"),
            (["-99999999999999999999f"], "-99999999999999999999: the highest"),
            (["--fast=0"], "--fast: '0'"),
            (["--fast=x"], "--fast: 'x'"),
            (["--fast=999999"], "--fast: '999999'"),
            (["-Tabc"], "-T: 'abc'"),
            (["-T", "abc"], "-T: 'abc'"),
            (["-T-1"], "-T: '-1'"),
            (["-T9999"], "-T: '9999'"),
            (["--threads="], "-T: ''"),
            (["--segment-size", "12x"], "--segment-size: '12x'"),
            (["--segment-size="], "--segment-size: ''"),
            (["--segment-size=-1"], "--segment-size: '-1'"),
            (["--segment-size=0"], "--segment-size: '0'"),
            (["--segment-size=63K"], "--segment-size: not from 64K to 1G"),
            (["--segment-size=2G"], "--segment-size: not from 64K to 1G"),
            (["--segment-size=99999999999G"], "--segment-size: '99999999999G'"),
            (["--overlap=1KK"], "--overlap: '1KK'"),
            (["--window-log=9"], "--window-log: not from 10 to 31"),
            (["--window-log=32"], "--window-log: not from 10 to 31"),
            (["--window-log=0"], "--window-log: '0'"),
            (["--window-log=20K"], "--window-log: '20K'"),
            (["--stats=1"], "--stats: takes no value"),
            (["--rubbish"], "--rubbish: unknown option"),
            (["--=1"], "--=1: unknown option"),
            (["-fy"], "-y: unknown option"),
            (["-d"], "-d: segzstd only compresses"),
            (["--test"], "--test: segzstd only compresses"),
            (["-o", "-f"], "-o: the file name is missing"),
            (["-o="], "-o: the file name is missing"),
        ):
            with self.subTest(options=options):
                self.assert_refused(self.run_it(*options, "a"), fragment)
        for option in ("-o", "-D", "-T", "--overlap", "--threads"):
            with self.subTest(option=option):
                self.assert_refused(self.run_it("a", option), "is missing")
        self.assertEqual(os.listdir(), ["a"])

    def test_two_dashes__files_follow(self):
        write_file("-x", b"content")
        self.run_well("-q", "--", "-x")
        self.assert_decodes("-x.zst", b"content")

    def test_dash__is_stdin_and_goes_to_stdout(self):
        result = self.run_well("-", data=self.text)
        self.assertEqual(decode(result.stdout), self.text)
        result = self.run_well("a", "-", data=b"content")
        self.assertEqual(decode(result.stdout), b"content")
        self.assert_decodes("a.zst", self.text)
        self.run_well("-q", "-", "-o", "b", data=b"content")
        self.assert_decodes("b", b"content")

    def test_help_and_version__to_stdout(self):
        for option in ("-h", "-H", "--help"):
            result = self.run_well(option)
            self.assertTrue(result.stdout.startswith(b"segzstd - "))
            self.assertEqual(result.stderr, "")
        for option in ("-V", "--version"):
            result = self.run_well(option)
            self.assertRegex(
                result.stdout, rb"^segzstd \d+\.\d+\.\d+, libzstd \d+\.\d+\.\d+\n$"
            )
        with open("/dev/full", "wb") as full:
            self.assert_refused(self.run_it("-h", stdout=full), "stdout", 70)

    def test_help__fits_a_terminal_and_the_manual_has_its_options(self):
        text = self.run_well("--help").stdout.decode()
        manual = read_file(MANUAL).decode().replace("\\-", "-")
        manual = manual.replace("\\fB", "").replace("\\fR", "")
        for line in text.splitlines():
            self.assertLess(len(line), 80)
        options = re.findall(r"^  (-.+?)  ", text, re.MULTILINE)
        names = set(re.findall(r"--?[\[\]\w-]+", " ".join(options)))
        self.assertGreater(len(names), 25)
        for name in names:
            self.assertIn(name, manual)


# ---------------------------------------------------------------------------
# What it says
# ---------------------------------------------------------------------------


class Messages(ToolTest):
    def setUp(self):
        super().setUp()
        self.text = make_text(100000)
        write_file("a", self.text)
        write_file("b", self.text)

    def test_summary__one_file__is_that_of_zstd(self):
        ours = self.run_well("a").stderr
        size = os.path.getsize("a.zst")
        self.assertEqual(
            ours,
            "%-20s : %5.2f%%   (%10s => %10s, a.zst)\n"
            % ("a", size / 1000, "97.7 KiB", "%.1f KiB" % (size / 1024)),
        )
        theirs = zstd("-f", "a").stderr.decode()
        self.assertEqual(ours.split(":")[0], theirs.split(":")[0])

    def test_summary__several_files__one_each_and_a_total(self):
        lines = self.run_well("a", "b").lines()
        self.assertEqual([line.split()[0] for line in lines], ["a", "b", "2"])
        self.assertIn("195 KiB", lines[2])

    def test_summary__quiet_or_stdout__none(self):
        self.assertEqual(self.run_well("-q", "a").stderr, "")
        self.assertEqual(self.run_well("-c", "a").stderr, "")
        lines = self.run_well("-cv", "a").lines()
        self.assertRegex(lines[0], "^segzstd .*libzstd")
        self.assertIn("stdout", lines[1])

    def test_quiet_twice__no_errors_either(self):
        result = self.run_it("-qq", "nothere", "a")
        self.assertEqual((result.status, result.stderr), (1, ""))
        self.assert_decodes("a.zst", self.text)

    def test_stats__one_line_for_each_file(self):
        result = self.run_well("-q", "--stats", "-T2", "-9", "a", "b")
        stats = read_stats(result.stderr)
        self.assertEqual([name for name, _ in stats], ["a", "b"])
        self.assertEqual(len(result.lines()), 2)
        for name, numbers in stats:
            self.assertEqual(
                list(numbers),
                "in out segments splits jobs threads level wall_ns cpu_ns "
                "memory_peak".split(),
            )
            self.assertEqual(numbers["in"], 100000)
            self.assertEqual(numbers["out"], os.path.getsize(name + ".zst"))
            self.assertEqual(numbers["threads"], 2)
            self.assertEqual(numbers["level"], 9)
            self.assertGreater(numbers["cpu_ns"], 0)
            self.assertGreater(numbers["memory_peak"], 100000)

    def test_progress__stderr_is_a_pipe__none(self):
        os.mkfifo("fifo")
        process = self.start("-o", "out", "fifo")
        with open("fifo", "wb") as f:
            f.write(bytes(4 * MIB))
        result = self.finish(process)
        self.assertEqual(len(result.lines()), 1)
        self.assertNotIn("\r", result.stderr)


# ---------------------------------------------------------------------------
# Files
# ---------------------------------------------------------------------------


class Files(ToolTest):
    def setUp(self):
        super().setUp()
        self.text = make_text(100000)
        write_file("a", self.text)

    def test_input__is_kept_unless_rm_is_given(self):
        self.run_well("-q", "a")
        self.run_well("-qf", "--rm", "-k", "a")
        self.assertTrue(os.path.exists("a"))
        self.run_well("-c", "--rm", "a")
        self.assertTrue(os.path.exists("a"))
        self.run_well("-qf", "--rm", "a")
        self.assertEqual(os.listdir(), ["a.zst"])
        self.assert_decodes("a.zst", self.text)

    def test_input__is_kept_if_anything_went_wrong(self):
        result = self.run_it("--rm", "-o", "/dev/full", "a")
        self.assertEqual(result.status, 70)
        self.assertEqual(os.listdir(), ["a"])

    def test_output__has_mode_and_times_of_the_input(self):
        for mode in (0o400, 0o640, 0o755):
            os.chmod("a", mode)
            os.utime("a", ns=(10**18 + 123456789, 10**18 + 987654321))
            for _ in "new", "replaced":
                self.run_well("-qf", "a")
                found = os.stat("a.zst")
                self.assertEqual(stat.S_IMODE(found.st_mode), mode)
                self.assertEqual(found.st_mtime_ns, 10**18 + 987654321)

    def test_output__of_a_pipe__has_the_mode_that_umask_leaves(self):
        for _ in "new", "replaced":
            self.run_well("-qfo", "b", data=self.text, umask=0o027)
            self.assertEqual(stat.S_IMODE(os.stat("b").st_mode), 0o640)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_output__written_by_root__has_the_owner_of_the_input(self):
        os.chown("a", 1234, 5678)
        self.run_well("-q", "a")
        found = os.stat("a.zst")
        self.assertEqual((found.st_uid, found.st_gid), (1234, 5678))

    def test_output__exists__not_overwritten_without_force(self):
        write_file("a.zst", b"old")
        for options in ([], ["-q"], ["-o", "a.zst"]):
            result = self.run_it(*options, "a")
            self.assert_refused(result, "a.zst already exists; not overwritten")
            self.assertEqual(read_file("a.zst"), b"old")
        # data that comes from stdin is no answer
        result = self.run_it("-o", "a.zst", data=b"y\n")
        self.assert_refused(result, "a.zst already exists; not overwritten")
        self.run_well("-qf", "a")
        self.assert_decodes("a.zst", self.text)
        self.assertEqual(sorted(os.listdir()), ["a", "a.zst"])

    def test_output__dangling_link__not_written_through(self):
        os.symlink("elsewhere", "a.zst")
        self.assert_refused(self.run_it("a"), "a.zst already exists")
        self.run_well("-qf", "a")
        self.assertFalse(os.path.lexists("elsewhere"))
        self.assertFalse(os.path.islink("a.zst"))

    def test_output__is_the_input__refused_even_with_force(self):
        os.link("a", "hard")
        for target in ("a", "hard"):
            result = self.run_it("-f", "a", "-o", target)
            self.assert_refused(result, target + " is the input")
        with open("a", "rb") as f:
            result = self.run_it("-f", "-o", "a", stdin=f)
            self.assert_refused(result, "a is the input")
        self.assertEqual(read_file("a"), self.text)

    def test_output__is_one_of_several_inputs__refused_even_with_force(self):
        os.link("a", "hard")
        write_file("b", b"other")
        for target in ("a", "hard"):
            result = self.run_it("-f", "-o", target, "b", "a")
            self.assert_refused(result, target + " is an input")
        with open("a", "rb") as a:
            result = self.run_it("-f", "-o", "a", "b", "-", stdin=a)
        self.assert_refused(result, "a is an input")
        self.assertEqual(read_file("a"), self.text)

    # A file of the shell's was replaced, and with it the link to it.
    def test_output__is_what_stdout_is__written_to_that(self):
        os.symlink("/proc/self/fd/1", "link")
        for target in ("link", "/dev/stdout", "out"):
            for mode in ("wb", "ab"):
                with open("out", mode) as out:
                    self.run_well("-q", "-o", target, "a", stdout=out)
            self.assert_decodes("out", 2 * self.text)
        self.assertTrue(os.path.islink("link"))
        with open("a", "ab") as a:
            result = self.run_it("-f", "-o", "/dev/stdout", "a", stdout=a)
        self.assert_refused(result, "/dev/stdout is the input")

    # The first pipe that was made got their place.
    def test_standard_files__are_closed__used_as_such(self):
        def closed(*numbers):
            return lambda: [os.close(n) for n in numbers]

        result = self.run_it(preexec_fn=closed(0))
        self.assert_refused(result, "stdin: read error", 37)
        result = self.run_it("-o", "out", preexec_fn=closed(0, 1))
        self.assert_refused(result, "stdin: read error", 37)
        for numbers in ((1,), (0, 1)):
            result = self.run_it("-c", "a", preexec_fn=closed(*numbers))
            self.assert_refused(result, "stdout: write error", 70)
        self.run_well("a", preexec_fn=closed(0, 1, 2))
        self.assert_decodes("a.zst", self.text)
        self.assertEqual(sorted(os.listdir()), ["a", "a.zst"])

    def test_output__cannot_be_made__one_line(self):
        os.mkdir("d")
        for target, fragment in (
            ("d", "d is a directory"),
            ("nodir/x", "nodir/x: No such file or directory"),
            ("a/x", "a/x: Not a directory"),
        ):
            self.assert_refused(self.run_it("-fo", target, "a"), fragment)
        self.assertEqual(sorted(os.listdir()), ["a", "d"])

    def test_output__special_file__is_written_and_stays(self):
        os.mkfifo("fifo")
        process = self.start("-q", "-o", "fifo", "a")
        self.assertEqual(decode(read_file("fifo")), self.text)
        self.assertEqual(self.finish(process).status, 0)
        self.assertTrue(stat.S_ISFIFO(os.stat("fifo").st_mode))

    def test_bad_files__are_named_and_the_others_done(self):
        os.mkdir("d")
        os.symlink("a", "link")
        os.mkdir("locked")
        write_file("z", b"last")
        paths = ["nothere", "d", "link", "/dev/null", "a", "a/b", "z"]
        result = self.run_it("-q", *paths)
        self.assertEqual(result.status, 1)
        self.assertEqual(
            result.lines(),
            [
                "segzstd: nothere: No such file or directory -- ignored",
                "segzstd: d is a directory -- ignored",
                "segzstd: link is a symbolic link -- ignored (-f follows it)",
                "segzstd: /dev/null is not a regular file -- ignored",
                "segzstd: a/b: Not a directory -- ignored",
            ],
        )
        self.assert_decodes("a.zst", self.text)
        self.assert_decodes("z.zst", b"last")
        self.assertFalse(os.path.exists("link.zst"))

    def test_file__unreadable__is_named_and_the_others_done(self):
        other = self.as_somebody()
        write_file("secret", b"secret")
        os.chmod("secret", 0)
        os.chmod(".", 0o777)
        result = self.run_it("-q", "secret", "a", **other)
        self.assert_refused(result, "secret: Permission denied")
        self.assert_decodes("a.zst", self.text)

    def test_folder__not_writable__is_named(self):
        other = self.as_somebody()
        os.mkdir("d")
        shutil.copy("a", "d/a")
        os.chmod("d", 0o555)
        os.chmod(".", 0o755)
        result = self.run_it("-q", "d/a", **other)
        os.chmod("d", 0o755)
        self.assert_refused(result, "d/a.zst: Permission denied")

    def test_link__with_force__is_followed(self):
        os.symlink("a", "link")
        self.run_well("-qf", "link")
        self.assert_decodes("link.zst", self.text)

    def test_link__to_a_pipe__is_read(self):
        read_end, write_end = os.pipe()
        process = self.start(
            "-c", "/dev/fd/%d" % read_end, pass_fds=[read_end]
        )
        os.close(read_end)
        os.write(write_end, b"content")
        os.close(write_end)
        result = self.finish(process)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(decode(result.stdout), b"content")

    def test_file__already_compressed__compressed_again_as_by_zstd(self):
        self.run_well("-q", "a")
        self.run_well("-q", "a.zst")
        self.assertEqual(decode(decode(read_file("a.zst.zst"))), self.text)

    def test_several_files__to_stdout__one_frame_each(self):
        write_file("b", b"second")
        result = self.run_well("-c", "a", "b")
        self.assertEqual(decode(result.stdout), self.text + b"second")
        write_file("both", result.stdout)
        self.assertEqual(describe("both")["Zstandard Frames"], "2")

    def test_several_files__to_one__only_with_force(self):
        write_file("b", b"second")
        result = self.run_it("-o", "both", "a", "b")
        self.assert_refused(result, "both: not written")
        result = self.run_well("-f", "--rm", "-o", "both", "a", "b")
        self.assertIn("the input is kept", result.stderr)
        self.assert_decodes("both", self.text + b"second")
        self.assertEqual(sorted(os.listdir()), ["a", "b", "both"])

    def test_many_files__all_done(self):
        paths = ["file%d" % i for i in range(300)]
        for i, path in enumerate(paths):
            write_file(path, self.text[: 37 * i])
        result = self.run_well("--rm", "--stats", *paths)
        self.assertEqual(len(read_stats(result.stderr)), 300)
        self.assertIn("300 files", result.lines()[-1])
        done = zstd("-dq", "--rm", *[path + ".zst" for path in paths])
        self.assertEqual(done.returncode, 0)
        for i, path in enumerate(paths):
            self.assertEqual(read_file(path), self.text[: 37 * i])


# ---------------------------------------------------------------------------
# What goes wrong on the way
# ---------------------------------------------------------------------------


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 * KIB, 100 * KIB))


def limit_memory(size):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


def ignore(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


class Failures(ToolTest):
    def test_device__full__status_of_zstd_and_the_device_stays(self):
        write_file("a", make_random(100 * KIB))
        result = self.run_it("-o", "/dev/full", "a")
        message = "/dev/full: write error: No space left on device"
        self.assert_refused(result, message, 70)
        self.assertEqual(zstd("-fo", "/dev/full", "a").returncode, 70)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        with open("/dev/full", "wb") as full:
            result = self.run_it("-c", "a", "a", stdout=full)
        self.assert_refused(result, "stdout: write error", 70)

    def test_disk__full__part_is_removed_and_the_others_done(self):
        write_file("a", make_random(1 * MIB))
        write_file("b", b"content")
        write_file("a.zst", b"old")
        for options in (["-o", "c", "a"], ["-f", "a", "b"]):
            result = self.run_it("-q", *options, preexec_fn=limit_file_size)
            self.assert_refused(result, "write error: File too large", 70)
        self.assertEqual(read_file("a.zst"), b"old")
        self.assert_decodes("b.zst", b"content")
        self.assertEqual(sorted(os.listdir()), ["a", "a.zst", "b", "b.zst"])

    def held(self, path, *options):
        """The command, with `path` open, until somebody reads "fifo"."""
        os.mkfifo("fifo")
        process = self.start("-q", "-1", "-o", "fifo", *options, path)
        return process, open("fifo", "rb")

    # The pipe and the output bound are far smaller than what is still to come.
    def test_file__becomes_shorter__one_line(self):
        write_file("a", make_random(64 * MIB))
        for options in ([], ["-T1"], ["--segment-size=1M"]):
            with self.subTest(options=options):
                os.truncate("a", 64 * MIB)
                process, reader = self.held("a", *options)
                with reader:
                    os.truncate("a", 32 * MIB)
                    reader.read()
                result = self.finish(process)
                message = "a: became shorter while it was read"
                self.assert_refused(result, message, 37)
                os.remove("fifo")

    def test_file__grows__first_part_is_whole_and_the_status_tells(self):
        content = make_random(64 * MIB)
        write_file("a", content)
        process, reader = self.held("a", "--rm")
        with reader:
            with open("a", "ab") as f:
                f.write(b"more")
            frame = reader.read()
        result = self.finish(process)
        message = "a grew while it was read; the output has its first %d bytes"
        self.assert_refused(result, message % (64 * MIB), 37)
        self.assertEqual(decode(frame), content)
        self.assertTrue(os.path.exists("a"))

    def test_read__fails__one_line(self):
        with open("/proc/self/mem", "rb") as f:  # nothing is at address 0
            result = self.run_it("-c", stdin=f)
        self.assert_refused(result, "stdin: read error: Input/output error", 37)

    def test_stdin__is_a_folder__one_line(self):
        fd = os.open(".", os.O_RDONLY)
        result = self.run_it("-c", stdin=fd)
        os.close(fd)
        self.assert_refused(result, "stdin: read error: Is a directory", 37)

    def test_pipe__closed_by_its_reader__quiet(self):
        write_file("a", make_random(4 * MIB))
        for preexec, status in (
            (None, -signal.SIGPIPE),
            (ignore(signal.SIGPIPE), 70),
        ):
            read_end, write_end = os.pipe()
            os.close(read_end)
            result = self.run_it("-c", "a", stdout=write_end, preexec_fn=preexec)
            os.close(write_end)
            self.assertEqual((result.status, result.stderr), (status, ""))

    @unittest.skipIf(is_sanitized(), "a sanitizer takes the address space")
    def test_memory__far_too_little__one_line(self):
        result = self.run_it(
            *["-q", "-19", "-T1", "-o", "out"],
            data=make_text(10 * MIB),
            preexec_fn=limit_memory(40 * MIB),
        )
        self.assert_refused(result, "stdin: not enough memory", 30)
        self.assertEqual(os.listdir(), [])

    # Four encoders did not fit, and took the memory from each other for ever.
    @unittest.skipIf(is_sanitized(), "a sanitizer takes the address space")
    def test_memory__too_little_for_all_threads__ends(self):
        content = make_text(10 * MIB)
        ends = []
        for size in (40, 64, 96, 128, 192, 1024):
            result = self.run_it(
                *["-q", "-12", "-T4", "-o", "out"],
                data=content,
                preexec_fn=limit_memory(size * MIB),
            )
            ends.append(result.status)
            if result.status == 0:
                self.assert_decodes("out", content)
                os.remove("out")
            self.assertEqual(os.listdir(), [])
        self.assertEqual(set(ends), {0, 30})
        self.assertEqual(ends[-1], 0)


class Signals(ToolTest):
    def started(self, *options, **kwargs):
        """The command in the middle of its work: it has taken more than a pipe
        holds, so that its output is open, and waits for the rest."""
        os.mkfifo("fifo")
        process = self.start("-q", *options, "fifo", **kwargs)
        writer = open("fifo", "wb", buffering=0)
        self.addCleanup(writer.close)
        writer.write(make_random(4 * PIPE_BYTES))
        return process, writer

    def test_signal__dies_by_it_and_removes_the_part(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number.name):
                process, writer = self.started("-o", "out")
                self.assertTrue(os.path.exists("out"))
                process.send_signal(number)
                result = self.finish(process)
                self.assertEqual(result.status, -number)
                self.assertEqual(os.listdir(), ["fifo"])
                os.remove("fifo")

    def test_signal__while_overwriting__the_old_file_is_there(self):
        write_file("out", b"old")
        process, writer = self.started("-fo", "out")
        self.assertEqual(len(os.listdir()), 3)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, -signal.SIGTERM)
        self.assertEqual(sorted(os.listdir()), ["fifo", "out"])
        self.assertEqual(read_file("out"), b"old")

    def test_signal__ignored_from_the_start__stays_so(self):
        process, writer = self.started(
            "-o", "out", preexec_fn=ignore(signal.SIGHUP)
        )
        process.send_signal(signal.SIGHUP)
        writer.close()
        self.assertEqual(self.finish(process).status, 0)
        self.assert_decodes("out", make_random(4 * PIPE_BYTES))

    def test_part__is_readable_by_its_owner_only(self):
        process, writer = self.started("-o", "out")
        self.assertEqual(stat.S_IMODE(os.stat("out").st_mode), 0o600)
        writer.close()
        self.assertEqual(self.finish(process).status, 0)


# ---------------------------------------------------------------------------
# Terminals
# ---------------------------------------------------------------------------


class Terminal(ToolTest):
    def setUp(self):
        super().setUp()
        self.screen, self.line = pty.openpty()
        self.addCleanup(os.close, self.screen)
        self.addCleanup(self.close_line)
        self.text = make_text(100000)
        write_file("a", self.text)

    def close_line(self):
        if self.line is not None:
            os.close(self.line)
            self.line = None

    def read_until(self, pattern):
        """What appears on the screen until it has the pattern."""
        text = ""
        while not re.search(pattern, text):
            if not select.select([self.screen], [], [], LIMIT)[0]:
                self.fail("never on the screen: %s; but: %r" % (pattern, text))
            text += os.read(self.screen, 4096).decode(errors="replace")
        return text

    def read_rest(self):
        """What is still to be read when all programs have ended."""
        self.close_line()
        text = b""
        with contextlib.suppress(OSError):  # EIO is the end
            while True:
                text += os.read(self.screen, 4096)
        return text.decode()

    def test_stdout__a_terminal__refused_without_force(self):
        for options in (["-c", "a"], ["-"]):
            with open("a", "rb") as f:
                result = self.run_it(*options, stdout=self.line, stdin=f)
            self.assert_refused(result, "stdout is a terminal")
        result = self.run_it("-o", os.ttyname(self.line), "a")
        self.assert_refused(result, "is a terminal")
        self.assertEqual(self.read_rest(), "")

    def test_stdout__a_terminal_with_force__written(self):
        write_file("b", b"abc")
        self.run_well("-cf", "b", stdout=self.line)
        self.assertIn("abc", self.read_until("abc"))

    def test_stdin__a_terminal__refused(self):
        result = self.run_it("-o", "b", stdin=self.line)
        self.assert_refused(result, "stdin is a terminal")
        self.assertFalse(os.path.exists("b"))

    def answer(self, answer, *args):
        process = self.start(*args, stdin=self.line, stderr=self.line)
        self.read_until(r"\(y/N\) ")
        os.write(self.screen, answer)
        return self.finish(process).status

    def test_overwrite__asked_on_a_terminal__only_yes_does_it(self):
        for answer in (b"n\n", b"\n", b"ay\n", b"\x04"):
            write_file("a.zst", b"old")
            self.assertEqual(self.answer(answer, "a"), 1)
            self.assertEqual(read_file("a.zst"), b"old")
        for answer in (b"y\n", b"Yes\n"):
            write_file("a.zst", b"old")
            self.assertEqual(self.answer(answer, "a"), 0)
            self.assert_decodes("a.zst", self.text)

    def test_overwrite__quiet__not_asked(self):
        write_file("a.zst", b"old")
        result = self.run_it("-q", "a", stdin=self.line)
        self.assert_refused(result, "a.zst already exists")

    def test_join__asked_on_a_terminal(self):
        write_file("b", b"second")
        self.assertEqual(self.answer(b"n\n", "-o", "both", "a", "b"), 1)
        self.assertFalse(os.path.exists("both"))
        self.assertEqual(self.answer(b"y\n", "-o", "both", "a", "b"), 0)
        self.assert_decodes("both", self.text + b"second")

    def start_on_fifo(self, *options):
        os.mkfifo("fifo")
        process = self.start(*options, "-o", "out", "fifo", stderr=self.line)
        writer = open("fifo", "wb", buffering=0)
        self.addCleanup(writer.close)
        return process, writer

    def test_progress__on_a_terminal__is_shown_and_cleared(self):
        process, writer = self.start_on_fifo()
        writer.write(bytes(4 * MIB))
        # not all of it need be compressed before more comes
        seen = self.read_until(r"\rfifo: [\d.]+ MiB, ratio \d+\.\d+, [\d.]+ \w+/s")
        writer.close()
        self.assertEqual(self.finish(process).status, 0)
        seen += self.read_rest()
        # lines of one file are written over each other, then over by blanks
        cleared = re.search(r"\r +\r(.*)\r\n$", seen)
        self.assertIsNotNone(cleared, repr(seen))
        self.assertTrue(cleared[1].startswith("fifo  "), repr(seen))
        self.assertEqual(seen.count("\n"), 1)

    def test_progress__known_size__tells_share_and_time_left(self):
        write_file("big", make_random(64 * MIB))
        os.mkfifo("fifo")
        process = self.start("-1", "-o", "fifo", "big", stderr=self.line)
        seen = ""
        with open("fifo", "rb", buffering=0) as reader:
            # so little at a time that the line is due before the end
            while reader.read(PIPE_BYTES) and "left" not in seen:
                if select.select([self.screen], [], [], 0.001)[0]:
                    seen += os.read(self.screen, 4096).decode()
            reader.read()
        self.assertEqual(self.finish(process).status, 0)
        self.assertRegex(
            seen,
            r"big: [\d.]+ [KM]iB of 64\.0 MiB, +\d+%, ratio 1\.00, "
            r"[\d.]+ \w+/s, \d+:\d\d left",
        )

    def test_progress__not_wanted__not_shown(self):
        for option in ("-q", "--no-progress"):
            process, writer = self.start_on_fifo(option)
            writer.write(bytes(4 * MIB))
            writer.close()
            self.assertEqual(self.finish(process).status, 0)
            for name in ("fifo", "out"):
                os.remove(name)
        self.assertNotIn(" ratio ", self.read_rest())

    def test_signal__progress_line__is_ended_first(self):
        process, writer = self.start_on_fifo()
        writer.write(bytes(4 * MIB))
        self.read_until("ratio")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process).status, -signal.SIGTERM)
        self.assertTrue(self.read_rest().endswith("\n"))


if __name__ == "__main__":
    unittest.main()
