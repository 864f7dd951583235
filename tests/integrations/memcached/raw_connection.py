"""A plain socket to a memcached server, for what pymemcache does not speak: the meta commands and those of an administrator."""

import socket
import time

TIMEOUT_S = 20
ENDINGS = (b"END", b"OK", b"ERROR", b"BUSY", b"BADCLASS", b"NOSPARE", b"NOTFULL", b"UNSAFE", b"SAME", b"CLIENT_ERROR",
           b"SERVER_ERROR", b"RESET")


class Refused(Exception):
    """The server answered with an error."""


class RawConnection:
    def __init__(self, address, receive_buffer_bytes=None, timeout_s=TIMEOUT_S):
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect(address)
        self.input = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text)

    def line(self):
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError("the server closed the connection")
        return line[:-2]

    def close(self):
        self.input.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- for an administrator -------------------------------------------------------------------------

    def admin(self, command):
        """The lines of the answer, with its last."""
        self.send(command.encode() + b"\r\n")
        lines = [self.line()]
        while not lines[-1].startswith(ENDINGS):
            lines.append(self.line())
        return [line.decode(errors="replace") for line in lines]

    def stats(self, part=""):
        lines = self.admin(f"stats {part}".strip())
        if lines[-1] not in ("END", "RESET"):
            raise Refused(f"stats {part}: {lines[-1]}")
        return dict(line.split(" ", 2)[1:] for line in lines[:-1] if line.count(" ") >= 2)

    def durable_epochs(self):
        """(the epoch that writes go into, the last durable one); None for a server without a pool."""
        stats = self.stats()
        if stats.get("stillpoint_start", "volatile") == "volatile":
            return None
        return int(stats["stillpoint_epoch"]), int(stats["stillpoint_durable_epoch"])

    def wait_durable(self, timeout_s=20):
        """Returns when all that was acknowledged before the call is durable; at once where there is no pool."""
        epochs = self.durable_epochs()
        give_up = time.monotonic() + timeout_s
        while epochs is not None:
            wanted, durable = epochs[0], self.durable_epochs()[1]
            if durable >= wanted:
                return
            if time.monotonic() > give_up:
                raise TimeoutError(f"epoch {wanted} is not durable after {timeout_s} s; the last that is: {durable}")
            time.sleep(0.002)

    # -- meta commands --------------------------------------------------------------------------------

    def meta_answer(self):
        """(code, {flag: token}, value or None) of one answer."""
        words = self.line().split()
        if not words or words[0] in (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR"):
            raise Refused(b" ".join(words).decode(errors="replace"))
        value = None
        if words[0] == b"VA":
            length = int(words[1])
            value = self.input.read(length + 2)
            if len(value) != length + 2:
                raise ConnectionResetError("the server closed the connection in a value")
            value, words = value[:-2], words[:1] + words[2:]
        return words[0].decode(), {chr(word[0]): word[1:].decode() for word in words[1:]}, value

    def meta(self, command, key, *flags, value=None):
        words = [command, key, *([str(len(value))] if value is not None else []), *flags]
        text = " ".join(words).encode() + b"\r\n"
        self.send(text if value is None else text + value + b"\r\n")
        return self.meta_answer()

    def meta_set_many(self, pairs):
        """Quiet sets in one go, and the answer to a no-op after them: much faster than one by one."""
        parts = [b"ms %s %d q\r\n%s\r\n" % (key.encode(), len(value), value) for key, value in pairs]
        self.send(b"".join(parts) + b"mn\r\n")
        answer = self.meta_answer()
        if answer[0] != "MN":
            raise Refused(f"ms: {answer[0]}")
