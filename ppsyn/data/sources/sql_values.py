"""Moments of PostgreSQL that Python has no object for, such as infinity, as text instead of an error."""

from typing import ClassVar

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from sqlalchemy.engine import Connection
from typing_extensions import override


def read_any_moment(connection: Connection) -> None:
    """Have a row with such a moment read like any other: as a value that fits no domain."""
    driver = connection.connection.driver_connection
    if isinstance(driver, psycopg.Connection):
        for name, loader in (("date", _Date), ("timestamp", _Timestamp), ("timestamptz", _Timestamptz)):
            driver.adapters.register_loader(name, loader)


class _Lenient(Loader):
    exact: ClassVar[type[Loader]]

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._exact = self.exact(oid, context)

    @override
    def load(self, data: Buffer) -> object:
        try:
            return self._exact.load(data)
        except psycopg.DataError:
            return bytes(data).decode()


class _Date(_Lenient):
    exact = DateLoader


class _Timestamp(_Lenient):
    exact = TimestampLoader


class _Timestamptz(_Lenient):
    exact = TimestamptzLoader
