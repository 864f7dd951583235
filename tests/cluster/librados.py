"""The few calls of librados that the tests need, through ctypes: any Python can use them, not only the system's own."""

import ctypes
import json
import os


class RadosError(OSError):
    """A call failed; `errno` is its reason."""


class MonitorError(RadosError):
    """The monitor refused a command; the message is its own."""


def load():
    """The library, or None where it is not installed."""
    try:
        library = ctypes.CDLL("librados.so.2")
    except OSError:
        return None
    for name in ("rados_shutdown", "rados_ioctx_destroy", "rados_buffer_free"):
        getattr(library, name).restype = None
    return library


class Rados:
    """One connection of one user; threads may share it."""

    def __init__(self, configuration, user="client.admin", seconds=20):
        self.library = load()
        self.handle = ctypes.c_void_p()
        self.check(self.library.rados_create2(ctypes.byref(self.handle), b"ceph", user.encode(), ctypes.c_uint64(0)), "rados_create2")
        try:
            self.check(self.library.rados_conf_read_file(self.handle, os.fsencode(configuration)), str(configuration))
            options = {"log_file": "", "client_mount_timeout": seconds, "rados_mon_op_timeout": seconds, "rados_osd_op_timeout": seconds}
            for name, value in options.items():
                self.check(self.library.rados_conf_set(self.handle, name.encode(), str(value).encode()), name)
            self.check(self.library.rados_connect(self.handle), "rados_connect")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @staticmethod
    def check(code, what):
        if code < 0:
            raise RadosError(-code, f"{what}: {os.strerror(-code)}")
        return code

    def close(self):
        if self.handle:
            self.library.rados_shutdown(self.handle)
            self.handle = ctypes.c_void_p()

    def command(self, prefix, target="mon", **arguments):
        """A command of the monitor (or of the manager, "mgr"): its JSON, or its text where it gives none."""
        send = getattr(self.library, f"rados_{target}_command")
        request = json.dumps({"prefix": prefix, "format": "json", **arguments}).encode()
        out, message = ctypes.c_void_p(), ctypes.c_void_p()
        out_bytes, message_bytes = ctypes.c_size_t(), ctypes.c_size_t()
        code = send(
            self.handle, (ctypes.c_char_p * 1)(request), ctypes.c_size_t(1), None, ctypes.c_size_t(0), ctypes.byref(out),
            ctypes.byref(out_bytes), ctypes.byref(message), ctypes.byref(message_bytes))
        answer, words = self.take(out, out_bytes), self.take(message, message_bytes)
        if code < 0:
            raise MonitorError(-code, f"{prefix}: {words.decode() or os.strerror(-code)}")
        try:
            return json.loads(answer)
        except ValueError:
            return answer.decode()

    def take(self, pointer, length):
        if not pointer:
            return b""
        content = ctypes.string_at(pointer, length.value)
        self.library.rados_buffer_free(pointer)
        return content

    def write(self, pool, name, content):
        """Writes a whole object; returns when all replicas have it."""
        with self.pool(pool) as opened:
            opened.write_full(name, content)

    def pool(self, name):
        return Pool(self, name)


class Pool:
    """One Ceph pool, opened; threads may share it. Its writes return when all replicas have them."""

    def __init__(self, connection, name):
        self.name, self.library = name, connection.library
        self.context = ctypes.c_void_p()
        Rados.check(self.library.rados_ioctx_create(connection.handle, name.encode(), ctypes.byref(self.context)), f"pool {name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.rados_ioctx_destroy(self.context)

    def write_full(self, name, content):
        code = self.library.rados_write_full(self.context, name.encode(), content, ctypes.c_size_t(len(content)))
        Rados.check(code, f"write of {self.name}/{name}")

    def write_at(self, name, content, offset):
        size = ctypes.c_size_t(len(content))
        code = self.library.rados_write(self.context, name.encode(), content, size, ctypes.c_uint64(offset))
        Rados.check(code, f"write of {self.name}/{name}")
