"""A page as a browser sees it: HTML, CSS, script, JSON, WebAssembly and events,
over HTTP/2 and TLS, in headless Chromium.

SEGZSTD_TEST_SCREENSHOTS=DIR keeps what the page looked like.
"""

import hashlib
import json
import os
import shutil
import threading
import zlib

import pytest

from support import build, chromium, data
from support.limits import KIB, MIB
from support.upstream import Wait, chunked, whole

EVENTS = 6
PROXY = "proxy_pass http://%s; proxy_http_version 1.1;"
TYPES = """
    types {
        text/html html;
        text/css css;
        text/javascript js;
        application/json json;
        application/wasm wasm;
    }
"""

# What everything else is for is at the end of each file, so that a page that
# misses the end of one does not work.

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>zstd</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/style.css">
</head>
<body>
<h1>Served by NGINX, compressed with zstd</h1>
<table id="results"></table>
<ol id="events"></ol>
<div id="text" hidden>%s</div>
<div id="box">The style sheet has arrived</div>
<script src="/app.js"></script>
</body>
</html>
"""

STYLE = """
body { font: 16px sans-serif; margin: 2em; background: #f4f6f8; }
td, th { padding: 0.2em 1em; border-bottom: 1px solid #ccc; text-align: left; }
#events { columns: 2; }
#box { background: rgb(0, 104, 71); color: white; padding: 1em; }
"""

SCRIPT = """
"use strict";
const results = { events: [], told: [], answers: [] };

function row(name, text) {
    const tr = document.getElementById("results").insertRow();
    tr.insertCell().textContent = name;
    tr.insertCell().textContent = text;
}

async function bytes(path) {
    const response = await fetch(path);
    const hash = await crypto.subtle.digest("SHA-256",
                                            await response.arrayBuffer());
    return Array.from(new Uint8Array(hash), b => b.toString(16)
                      .padStart(2, "0")).join("");
}

async function table() {
    const response = await fetch("/data.json");
    const rows = await response.json();
    let sum = 0;
    for (const entry of rows)
        sum += entry.value;
    results.rows = rows.length;
    results.sum = sum;
    row("JSON", rows.length + " rows, sum " + sum);
}

async function wasm() {
    const { instance } =
        await WebAssembly.instantiateStreaming(fetch("/module.wasm"));
    results.wasm = instance.exports.add(19, 23);
    row("WebAssembly", "19 + 23 = " + results.wasm);
}

/* The server sends an event when the one before it was acknowledged. */
function stream() {
    return new Promise((resolve, reject) => {
        const source = new EventSource("/events");
        source.onerror = () => reject(new Error("the event stream broke"));
        source.onmessage = async event => {
            if (event.data === "end") {
                source.close();
                resolve();
                return;
            }
            const number = event.data.split(" ")[0];
            results.events.push([number, performance.now()]);
            const li = document.createElement("li");
            li.textContent = event.data.slice(0, 60);
            document.getElementById("events").append(li);
            results.told.push(performance.now());
            const answer = await fetch("/seen/" + number);
            results.answers.push(await answer.text());
        };
    });
}

async function main() {
    results.script = payload.length;
    results.html = document.getElementById("text").textContent.length;
    row("Page", results.html + " characters");
    row("Script", results.script + " characters");
    await Promise.all([table(), wasm(), stream()]);
    results.sha = {};
    for (const path of ["/style.css", "/app.js", "/data.json", "/module.wasm",
                        "/page.html"])
        results.sha[path] = await bytes(path);
    results.box = getComputedStyle(document.getElementById("box"))
                  .backgroundColor;
    row("Hashes", Object.keys(results.sha).length + " files");
}

main().catch(error => { results.error = String(error); })
      .finally(() => { window.done = JSON.stringify(results); });
"""


def letters(size, seed):
    """Text without quotes, backslashes and markup."""
    text = data.text(size, seed).decode()
    return text.translate(str.maketrans("", "", '"{}\\\n<>&'))


def leb128(value):
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def section(number, content):
    return bytes([number]) + leb128(len(content)) + content


def wasm_module(size):
    """A module with one function, add(), after custom sections of a size."""
    name = b"\x04text"
    return (
        b"\0asm\1\0\0\0"
        + section(0, name + data.text(size, 3))
        + section(1, b"\x01\x60\x02\x7f\x7f\x01\x7f")
        + section(3, b"\x01\x00")
        + section(7, b"\x01\x03add\x00\x00")
        + section(10, b"\x01\x07\x00\x20\x00\x20\x01\x6a\x0b")
    )


@pytest.fixture
def browser(tmp_path):
    if not chromium.command():
        pytest.skip("chromium is not installed")
    browser = chromium.Browser(str(tmp_path))
    yield browser
    browser.close()


def site():
    rules = "".join(
        ".c%d { margin: %dpx; }\n" % (i, i % 50) for i in range(12000)
    )
    rows = [
        {"id": i, "name": "row %d" % (i * 7919 % 10007), "value": i * i % 997}
        for i in range(40000)
    ]
    script = 'const payload = "%s";\n' % letters(1500 * KIB, 1)
    files = {
        "page.html": PAGE % letters(300 * KIB, 2),
        "style.css": rules + STYLE,
        "app.js": script + SCRIPT,
        "data.json": json.dumps(rows),
        "module.wasm": wasm_module(MIB + 5),
    }
    files = {
        name: content if isinstance(content, bytes) else content.encode()
        for name, content in files.items()
    }
    return files, rows


def offer_events(upstream, **fields):
    """Each event waits for the page's word that it has the one before."""
    steps = []
    for number in range(EVENTS):
        seen = threading.Event()
        text = letters(200 + 3000 * number, number)
        steps += [b"data: %d %s\n\n" % (number, text.encode()), Wait(seen)]
        upstream.reply("/seen/%d" % number, tell(seen))
    steps.append(b"data: end\n\n")
    upstream.reply(
        "/events",
        chunked(*steps, content_type="text/event-stream", **fields),
    )


def tell(seen):
    def reply(*_):
        seen.set()
        return whole(b"ok")

    return reply


@pytest.mark.slow
@pytest.mark.parametrize("buffering", ["off", "X-Accel-Buffering"])
def test_page(serve, mode, upstream, browser, tmp_path, buffering):
    if not build.nginx_has("http_v2_module"):
        pytest.skip("this NGINX has no HTTP/2")
    if not build.nginx_has("http_ssl_module"):
        pytest.skip("this NGINX has no TLS")
    files, rows = site()
    proxy = PROXY % upstream.address
    if buffering == "off":
        unbuffered = "proxy_buffering off;"
        offer_events(upstream)
    else:
        unbuffered = "proxy_buffering on;"
        offer_events(upstream, X_Accel_Buffering="no")
    nginx = serve(
        "location /events { %s %s } location /seen/ { %s }"
        % (proxy, unbuffered, proxy),
        mode,
        http=TYPES,
        files=files,
        tls=True,
    )

    browser.open("https://127.0.0.1:%d/page.html" % nginx.tls_port)
    results = json.loads(browser.wait("window.done"))
    keep(browser.screenshot(str(tmp_path / "page.png")), mode, buffering)

    assert "error" not in results, results["error"]
    assert browser.complaints() == []
    check_contents(results, files, rows)
    check_events(results)
    check_traffic(browser.responses(), files)


def check_contents(results, files, rows):
    assert results["rows"] == len(rows)
    assert results["sum"] == sum(row["value"] for row in rows)
    assert results["wasm"] == 42
    assert results["html"] == len(letters(300 * KIB, 2))
    assert results["script"] == len(letters(1500 * KIB, 1))
    assert results["box"] == "rgb(0, 104, 71)"
    assert results["sha"] == {
        "/" + name: hashlib.sha256(content).hexdigest()
        for name, content in files.items()
    }


def check_events(results):
    """One by one: each came after the page had told of the one before. With
    one held back, the next would never have been sent."""
    numbers = [number for number, _ in results["events"]]
    assert numbers == [str(number) for number in range(EVENTS)]
    times = [time for _, time in results["events"]]
    for told, time in zip(results["told"], times[1:]):
        assert told <= time
    # the last answers race with the end of the stream
    assert set(results["answers"]) == {"ok"}


def check_traffic(responses, files):
    for path in [*("/" + name for name in files), "/events"]:
        response = responses[path]
        assert response["status"] == 200
        assert response["protocol"] == "h2", path
        headers = {k.lower(): v for k, v in response["headers"].items()}
        assert headers["content-encoding"] == "zstd", path
        assert "accept-encoding" in headers["vary"].lower(), path
        assert "content-length" not in headers, path


def keep(path, mode, buffering):
    """The screenshot shows the box in its colour."""
    folder = os.environ.get("SEGZSTD_TEST_SCREENSHOTS")
    if folder:
        os.makedirs(folder, exist_ok=True)
        name = "page-%s-%s.png" % (mode, buffering.lower())
        shutil.copy(path, os.path.join(folder, name))
    with open(path, "rb") as f:
        content = f.read()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert bytes([0, 104, 71]) * 20 in unfiltered(content)


def unfiltered(png):
    """The colours of all pixels, three bytes each, of an 8-bit image."""
    at, data_parts = 8, []
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        kind = png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width = int.from_bytes(body[:4], "big")
            channels = {2: 3, 6: 4}[body[9]]
            assert body[8] == 8 and body[12] == 0
        elif kind == b"IDAT":
            data_parts.append(body)
        at += size + 12
    raw = zlib.decompress(b"".join(data_parts))
    stride = width * channels
    before = bytearray(stride)
    out = bytearray()
    for start in range(0, len(raw), stride + 1):
        line = bytearray(raw[start + 1 : start + 1 + stride])
        restore(raw[start], line, before, channels)
        before = line
        for i in range(0, stride, channels):
            out += line[i : i + 3]
    return bytes(out)


def restore(kind, line, above, step):
    """Undoes the filter of one line (PNG, section 9)."""
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        if kind == 1:
            line[i] = line[i] + left & 255
        elif kind == 2:
            line[i] = line[i] + above[i] & 255
        elif kind == 3:
            line[i] = line[i] + (left + above[i]) // 2 & 255
        elif kind == 4:
            guess = left + above[i] - corner
            near = min((left, above[i], corner), key=lambda v: abs(guess - v))
            line[i] = line[i] + near & 255
