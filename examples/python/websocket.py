"""A WebSocket client (RFC 6455) with Python's standard library alone: text messages, pings, close codes.

An application may use a package such as `websockets` instead; the phone needs `connect`, `send`, `receive` and `close`.
"""

import asyncio
import base64
import hashlib
import os
import ssl
import struct
from urllib.parse import urlsplit

CONTINUATION, TEXT, CLOSE, PING, PONG = 0x0, 0x1, 0x8, 0x9, 0xA
# RFC 6455, section 1.3.
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# The service pings every 25 s. Who hears nothing for longer has lost it, in seconds.
SILENCE = 60


class Closed(Exception):
    """The connection is over. 1006 is the network's; the service's codes are in docs/generated/close-codes.md."""

    def __init__(self, code, reason=""):
        super().__init__(f"{code} {reason}".strip())
        self.code = code


async def connect(url, subprotocols, timeout=10):
    """Opens a connection; raises Closed (1006) or OSError where there is none within `timeout` seconds."""
    try:
        return await asyncio.wait_for(_connect(url, subprotocols), timeout)
    except asyncio.TimeoutError:
        raise Closed(1006, "no answer in time") from None


async def _connect(url, subprotocols):
    parts = urlsplit(url)
    secure = parts.scheme == "wss"
    port = parts.port or (443 if secure else 80)
    tls = ssl.create_default_context() if secure else None
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=tls)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {parts.path or '/'}{'?' + parts.query if parts.query else ''} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
        f"Sec-WebSocket-Protocol: {', '.join(subprotocols)}",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        raise Closed(1006, "closed before it was open") from None
    status, *headers = head.split("\r\n")
    accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
    if " 101 " not in status or not any(header.endswith(f": {accept}") for header in headers):
        writer.close()
        raise Closed(1006, status)
    return WebSocket(reader, writer)


class WebSocket:
    def __init__(self, reader, writer):
        self._reader = reader
        self._writer = writer

    async def send(self, text):
        self._write(TEXT, text.encode())
        await self._writer.drain()

    async def receive(self):
        """The next text message; raises Closed when there will be none."""
        message = b""
        while True:
            try:
                final, opcode, payload = await asyncio.wait_for(self._frame(), SILENCE)
            except asyncio.TimeoutError:
                self._writer.close()
                raise Closed(1006, "silent") from None
            except (asyncio.IncompleteReadError, OSError):
                raise Closed(1006) from None
            if opcode == PING:
                self._write(PONG, payload)
            elif opcode == CLOSE:
                self._write(CLOSE, payload[:2])
                self._writer.close()
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
                raise Closed(code, payload[2:].decode(errors="replace"))
            elif opcode in (TEXT, CONTINUATION):
                message += payload
                if final:
                    return message.decode()

    def close(self, code=1000):
        self._write(CLOSE, struct.pack("!H", code))
        self._writer.close()

    async def _frame(self):
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await self._reader.readexactly(8))
        return first & 0x80, first & 0x0F, await self._reader.readexactly(length)

    def _write(self, opcode, payload):
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, length)
        # What a client sends is masked (section 5.3).
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        if not self._writer.is_closing():
            self._writer.write(head + mask + masked)
