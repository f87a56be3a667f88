"""HTTP/2 by python3-h2: many streams, small windows, resets."""

import contextlib
import socket
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

from support.http1 import Hangs, trusting
from support.limits import HANG


class Stream:
    def __init__(self, number):
        self.number = number
        self.fields = []
        self.pieces = []  # (time, bytes)
        self.ends = 0  # how many END_STREAM came
        self.reset = None  # its error code

    @property
    def status(self):
        return int(self.get(":status"))

    def get(self, name, default=None):
        values = self.all(name)
        assert len(values) < 2, "%s comes twice: %s" % (name, values)
        return values[0] if values else default

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name.lower()]

    @property
    def body(self):
        return b"".join(piece for _, piece in self.pieces)

    @property
    def ended(self):
        return "stream" if self.ends else None

    @property
    def over(self):
        return self.ends or self.reset is not None


class Connection:
    def __init__(
        self,
        port,
        tls=False,
        window=None,
        max_frame=None,
        acknowledge=True,
        timeout=HANG,
    ):
        """window: the initial window of each stream. Without acknowledge the
        test itself opens the windows, by open()."""
        self.timeout = timeout
        self.acknowledge = acknowledge
        self.streams = {}
        self.goaway = None
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            context = trusting()
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
            assert self.socket.selected_alpn_protocol() == "h2"
        self.h2 = h2.connection.H2Connection(
            h2.config.H2Configuration(header_encoding="utf-8")
        )
        codes = h2.settings.SettingCodes
        settings = {codes.ENABLE_PUSH: 0}
        if window is not None:
            settings[codes.INITIAL_WINDOW_SIZE] = window
        if max_frame is not None:
            settings[codes.MAX_FRAME_SIZE] = max_frame
        self.h2.local_settings = h2.settings.Settings(
            client=True, initial_values=settings
        )
        self.h2.initiate_connection()
        self.flush()
        self.acknowledged = False
        while not self.acknowledged and self.step():
            pass  # until both sides count by these settings

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(Exception):
            self.h2.close_connection()
            self.flush()
        self.socket.close()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def request(self, path, accept="zstd", method="GET", fields=()):
        number = self.h2.get_next_available_stream_id()
        headers = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "test"),
            (":path", path),
        ]
        if accept is not None:
            headers.append(("accept-encoding", accept))
        headers += dict(fields).items()
        self.h2.send_headers(number, headers, end_stream=True)
        self.streams[number] = stream = Stream(number)
        self.flush()
        return stream

    def reset(self, stream):
        self.h2.reset_stream(stream.number, h2.errors.ErrorCodes.CANCEL)
        stream.reset = h2.errors.ErrorCodes.CANCEL
        self.flush()

    def open(self, stream, count):
        self.h2.increment_flow_control_window(count, stream.number)
        self.h2.increment_flow_control_window(count)
        self.flush()

    def step(self, timeout=None):
        """Takes what the server sent next; False at the connection's end."""
        self.socket.settimeout(timeout or self.timeout)
        try:
            data = self.socket.recv(1 << 16)
        except socket.timeout:
            raise Hangs("nothing more arrives") from None
        for event in self.h2.receive_data(data) if data else ():
            self.take(event)
        self.flush()
        return bool(data)

    def take(self, event):
        if isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = event.error_code
            return
        if isinstance(event, h2.events.SettingsAcknowledged):
            self.acknowledged = True
            return
        stream = self.streams.get(getattr(event, "stream_id", None))
        if not stream:
            return
        if isinstance(event, h2.events.ResponseReceived):
            stream.fields = list(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            if event.data:
                stream.pieces.append((time.monotonic(), event.data))
            if self.acknowledge and event.flow_controlled_length:
                with contextlib.suppress(h2.exceptions.StreamClosedError):
                    self.h2.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
        elif isinstance(event, h2.events.StreamEnded):
            stream.ends += 1
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = event.error_code

    def until(self, condition):
        limit = time.monotonic() + 4 * self.timeout
        while not condition():
            assert time.monotonic() < limit, "takes too long"
            if not self.step():
                break
        return self

    def finish(self, *streams):
        """Until these, or all streams, are over."""
        wanted = streams or list(self.streams.values())
        self.until(lambda: all(s.over for s in wanted))
        return wanted

    def get(self, path, **options):
        stream = self.request(path, **options)
        self.finish(stream)
        return stream


def get(port, path, tls=False, timeout=HANG, **options):
    """A response on a connection of its own."""
    with Connection(port, tls=tls, timeout=timeout) as connection:
        return connection.get(path, **options)
