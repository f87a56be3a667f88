"""A headless Chromium, commanded by the DevTools protocol over a pipe."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time

from support.limits import HANG

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--ignore-certificate-errors",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

# A browser needs longer than a client of ours before it hangs.
START = 2 * HANG


def command():
    """Path of the installed browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """With one page, whose traffic is kept in self.events."""

    def __init__(self, folder, width=900, height=700):
        self.number = 0
        self.pending = b""
        self.events = []
        self.session = None
        self.log = open(os.path.join(folder, "chromium.log"), "wb")
        self.process = self.spawn(
            [
                command(),
                *OPTIONS,
                "--user-data-dir=" + os.path.join(folder, "profile"),
                "--window-size=%d,%d" % (width, height),
                "about:blank",
            ]
        )
        self.attach()

    def spawn(self, arguments):
        """The browser reads commands from its file 3 and writes to 4."""
        reads, self.writer = os.pipe()
        self.reader, writes = os.pipe()
        # so that neither is 3 or 4 in the new process before it has its own
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (reads, writes)]
        os.close(reads)
        os.close(writes)

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            preexec_fn=place,
            pass_fds=(3, 4),
            start_new_session=True,
        )
        for fd in ends:
            os.close(fd)
        return process

    def attach(self):
        for target in self.call("Target.getTargets")["targetInfos"]:
            if target["type"] == "page":
                break
        self.session = self.call(
            "Target.attachToTarget",
            targetId=target["targetId"],
            flatten=True,
        )["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        """The result of a command."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.write(json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + START
        while True:
            answer = self.receive(limit)
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def write(self, data):
        while data:
            data = data[os.write(self.writer, data) :]

    def receive(self, limit):
        while b"\0" not in self.pending:
            left = limit - time.monotonic()
            ready, _, _ = select.select([self.reader], [], [], max(left, 0))
            assert ready, "Chromium does not answer"
            data = os.read(self.reader, 1 << 20)
            assert data, "Chromium is gone"
            self.pending += data
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def open(self, url):
        result = self.call("Page.navigate", url=url)
        assert "errorText" not in result, result

    def value(self, expression):
        """Of a JavaScript expression, in the page."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, expression, timeout=START):
        """Until the expression is true; its value then."""
        limit = time.monotonic() + timeout
        while True:
            value = self.value(expression)
            if value:
                return value
            if time.monotonic() > limit:
                raise AssertionError(
                    "%s does not come: %s" % (expression, self.complaints())
                )
            time.sleep(0.05)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
        return path

    def responses(self):
        """What DevTools says of each response, by the path of its URL."""
        found = {}
        for event in self.events:
            if event["method"] == "Network.responseReceived":
                response = event["params"]["response"]
                path = "/" + response["url"].split("/", 3)[3]
                found[path] = response
        return found

    def complaints(self):
        """Of the browser or the page: what was not as it should be."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Network.loadingFailed":
                if not params["canceled"]:  # by the page itself
                    found.append(params)
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(params)
            elif event["method"] == "Log.entryAdded":
                if params["entry"]["level"] == "error":
                    found.append(params["entry"])
        return found

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(HANG)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        self.log.close()
