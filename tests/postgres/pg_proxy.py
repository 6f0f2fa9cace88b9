"""The network between a client and a PostgreSQL server, and what may befall it."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from pg_place import free_port
from pg_url import url_of
from psycopg.conninfo import conninfo_to_dict

READY = b"Z\x00\x00\x00\x05"
"""Begins the last message of every answer: the server is ready for the next query."""


class _Link:
    """One client's connection and the one to the server behind it."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self.writers = writers
        self.answers = "arrive"
        """Or they are ``lost``; or ``last``: the one to the request on its way is lost, and the connection with it."""

    def cut(self) -> None:
        for writer in self.writers:
            # Both ends get RST, as from a machine that has forgotten the connection.
            there: socket.socket = writer.get_extra_info("socket")
            if there.fileno() >= 0:
                there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes all on to the server of ``target``; ``dsn`` leads through it.

    ``hold`` is no lost network: the kernel still acknowledges what nobody then reads, as where the server hangs.
    """

    def __init__(self, target: str) -> None:
        params = conninfo_to_dict(target)
        self._host, self._to_port = str(params.get("host") or "127.0.0.1"), int(params.get("port") or 5432)
        self.port = free_port()
        self.dsn = url_of(target, host="127.0.0.1", port=self.port)
        self.requests = 0
        """What clients have sent so far, in pieces as they sent it."""
        self._links: set[_Link] = set()
        self._delay = 0.0
        self._break: tuple[int, bool] | None = None
        self._alone = True
        self._listening: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._flows = asyncio.Event()
        self._flows.set()
        self._do(self._listen)

    # --- what may befall it ---------------------------------------------------------------------------------

    def cut(self) -> None:
        """Reset all connections; new ones are taken."""
        self._do(self._cut)

    def refuse(self) -> None:
        """Reset all connections, and listen no more."""
        self._do(self._deafen)
        self.cut()

    def hold(self) -> None:
        """Forward nothing, either way, of old connections and of new ones, until ``resume``."""
        self._do(self._flows.clear)

    def delay(self, seconds: float) -> None:
        """Let each piece wait so long, either way."""
        self._delay = seconds

    def lose_answers(self) -> None:
        """Of the connections there are: requests arrive, answers do not, until ``cut``."""
        for link in list(self._links):
            link.answers = "lost"

    def break_at(self, request: int, arrives: bool, alone: bool = True) -> None:
        """Cut the connection that sends the ``request``-th piece from now, 1 being the next one.

        Before it reaches the server; or where it ``arrives``, when the server has carried it out, before its answer
        reaches the client. Not ``alone``: there is no way in any more after it.
        """
        self._break = (self.requests + request, arrives)
        self._alone = alone

    @property
    def listens(self) -> bool:
        return self._listening is not None

    def resume(self) -> None:
        """All is well again: what was held flows, new connections are taken, nothing is late."""
        self._delay, self._break = 0.0, None
        self._do(self._listen)
        self._do(self._flows.set)

    def close(self) -> None:
        if self._thread.is_alive():
            self.refuse()
            self._do(self._end)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    # --- inside its thread ----------------------------------------------------------------------------------

    def _do(self, step: Callable[[], Any]) -> None:
        async def call() -> None:
            done = step()
            if asyncio.iscoroutine(done):
                await done

        asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    async def _listen(self) -> None:
        if self._listening is None:
            self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    def _deafen(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None

    def _cut(self) -> None:
        for link in list(self._links):
            link.cut()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        link = _Link(to_client)
        self._links.add(link)
        try:
            await self._flows.wait()
            if self._host.startswith("/"):
                path = f"{self._host}/.s.PGSQL.{self._to_port}"
                from_server, to_server = await asyncio.open_unix_connection(path)
            else:
                from_server, to_server = await asyncio.open_connection(self._host, self._to_port)
            link.writers = (to_client, to_server)
            pumps = [
                asyncio.ensure_future(self._requests(link, from_client, to_server)),
                asyncio.ensure_future(self._answers(link, from_server, to_client)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        except OSError:  # the server is not there
            pass
        finally:
            self._links.discard(link)
            for writer in link.writers:
                writer.close()

    async def _requests(self, link: _Link, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(1 << 20):
            self.requests += 1
            if self._break is not None and self._break[0] == self.requests:
                arrives, self._break = self._break[1], None
                if not arrives:
                    link.cut()
                    break
                link.answers = "last"
            await self._pass(piece, sink)

    async def _answers(self, link: _Link, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        tail = b""
        while piece := await source.read(1 << 20):
            tail = (tail + piece)[-6:]
            if link.answers == "arrive":
                await self._pass(piece, sink)
            elif link.answers == "last" and tail.startswith(READY):
                if not self._alone:
                    self._deafen()
                link.cut()
                break

    async def _pass(self, piece: bytes, sink: asyncio.StreamWriter) -> None:
        if self._delay:
            await asyncio.sleep(self._delay)
        await self._flows.wait()
        sink.write(piece)
        await sink.drain()
