# SPDX-License-Identifier: Apache-2.0
"""A way to a server on loopback that is closed now and then, and may deliver late what was sent meanwhile."""
import asyncio
import threading

LATE_SECONDS = 2  # a server gives up what nobody waits for any more: it hears so late of an end of a connection

# What each does: no byte gets to the server, or none back, or neither, until it is over; or all connections are reset.
WAYS = ("late", "deaf", "away", "cut")


class Proxy:
    """close(way) and open(), from any thread. port: where it listens; to: the server's."""

    def __init__(self, to):
        self._to = to
        self._writers = set()
        self._loop = asyncio.new_event_loop()
        self._there, self._back, self._is_cut = asyncio.Event(), asyncio.Event(), False
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.open()
        server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop).result()
        self.port = server.sockets[0].getsockname()[1]

    def close(self, way):
        self._loop.call_soon_threadsafe(self._set, way)

    def open(self):
        self._loop.call_soon_threadsafe(self._set, "")

    def _set(self, way):
        for event, ways in ((self._there, ("late", "away")), (self._back, ("deaf", "away"))):
            (event.clear if way in ways else event.set)()
        self._is_cut = way == "cut"
        if self._is_cut:
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader, writer):
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        await asyncio.gather(self._pump(reader, server_writer, self._there, LATE_SECONDS), self._pump(server_reader, writer, self._back, 0))
        self._writers -= {writer, server_writer}

    @staticmethod
    async def _pump(reader, writer, gate, linger):
        try:
            while data := await reader.read(65536):
                await gate.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        await gate.wait()
        await asyncio.sleep(linger)
        writer.close()
