"""The part of MongoDB's protocol that the checks need: a few BSON types and one command at a time."""

import socket
import struct
from urllib.parse import urlsplit

DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, OBJECT_ID = 1, 2, 3, 4, 5, 7
BOOLEAN, DATE, NULL, INT32, TIMESTAMP, INT64 = 8, 9, 10, 16, 17, 18
MESSAGE = 2013


class Int32(int):
    """A number to encode with 32 bits; plain numbers are encoded with 64."""


class Refused(Exception):
    """The server answered with an error."""


def encode(document):
    body = b"".join(_element(name, value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def _element(name, value):
    kind, data = _value(value)
    return bytes([kind]) + name.encode() + b"\0" + data


def _value(value):
    if isinstance(value, bool):
        return BOOLEAN, bytes([value])
    if isinstance(value, Int32):
        return INT32, struct.pack("<i", value)
    if isinstance(value, int):
        return INT64, struct.pack("<q", value)
    if isinstance(value, float):
        return DOUBLE, struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return STRING, struct.pack("<i", len(text)) + text
    if isinstance(value, bytes):
        return BINARY, struct.pack("<iB", len(value), 0) + value
    if isinstance(value, dict):
        return DOCUMENT, encode(value)
    return ARRAY, encode({str(at): item for at, item in enumerate(value)})


def decode(data, kinds=None):
    """Parses a document's fields; stores their BSON types in `kinds`."""
    fields, at, end = {}, 4, struct.unpack_from("<i", data)[0] - 1
    while at < end:
        kind = data[at]
        zero = data.index(0, at + 1)
        name = data[at + 1 : zero].decode()
        fields[name], at = _read(kind, data, zero + 1)
        if kinds is not None:
            kinds[name] = kind
    return fields


def _read(kind, data, at):
    fixed = {DOUBLE: "<d", BOOLEAN: "<?", DATE: "<q", INT32: "<i", TIMESTAMP: "<Q", INT64: "<q"}
    if kind in fixed:
        return struct.unpack_from(fixed[kind], data, at)[0], at + struct.calcsize(fixed[kind])
    if kind == NULL:
        return None, at
    if kind == OBJECT_ID:
        return data[at : at + 12], at + 12
    length = struct.unpack_from("<i", data, at)[0]
    if kind == STRING:
        return data[at + 4 : at + 3 + length].decode(), at + 4 + length
    if kind == BINARY:
        return data[at + 5 : at + 5 + length], at + 5 + length
    raw = data[at : at + length]
    if kind == ARRAY:
        return [Raw(item) if isinstance(item, bytes) else item for item in _items(raw)], at + length
    if kind == DOCUMENT:
        return decode(raw), at + length
    raise Refused(f"unsupported BSON type {kind}")


def _items(raw):
    at, end = 4, len(raw) - 1
    while at < end:
        kind, zero = raw[at], raw.index(0, at + 1)
        if kind == DOCUMENT:
            length = struct.unpack_from("<i", raw, zero + 1)[0]
            yield raw[zero + 1 : zero + 1 + length]
            at = zero + 1 + length
        else:
            item, at = _read(kind, raw, zero + 1)
            yield item


class Raw(bytes):
    """A document in an array, as raw bytes."""


class Client:
    def __init__(self, uri):
        address = urlsplit(uri).netloc.split(",")[0]
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = 0

    def run(self, database, command):
        self.request += 1
        body = struct.pack("<iB", 0, 0) + encode(command | {"$db": database})
        self.socket.sendall(struct.pack("<iiii", 16 + len(body), self.request, 0, MESSAGE) + body)
        length = struct.unpack("<i", self._receive(4))[0]
        reply = decode(self._receive(length - 4)[17:])
        if not reply.get("ok") or reply.get("writeErrors"):
            raise Refused(str(reply.get("errmsg") or decode(reply["writeErrors"][0])))
        return reply

    def _receive(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise Refused("the server closed the connection")
            data += piece
        return data

    def capped(self, database, collection, size):
        self.run(database, {"create": collection, "capped": True, "size": size})

    def insert(self, database, collection, documents):
        self.run(database, {"insert": collection, "documents": documents})

    def delete(self, database, collection, identity):
        delete = {"q": {"_id": identity}, "limit": Int32(1)}
        self.run(database, {"delete": collection, "deletes": [delete]})

    def find(self, database, collection):
        """All documents, raw, in natural order."""
        reply = self.run(database, {"find": collection, "batchSize": Int32(1_000_000)})
        return reply["cursor"]["firstBatch"]

    def close(self):
        self.socket.close()
