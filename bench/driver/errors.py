"""How the driver fails: each error ends the command with its code and one sentence."""

USAGE = 64
FELL_SHORT = 1
UNAVAILABLE = 69
WRONG_RESULT = 70
CANNOT_CREATE = 73
INTERRUPTED = 130


class BenchError(Exception):
    """The error, in a sentence, and the exit code."""

    def __init__(self, message, code=USAGE):
        super().__init__(message)
        self.code = code


class Unavailable(BenchError):
    """A peer or a medium that this machine does not have: it is skipped, with what would bring it."""

    def __init__(self, message, remedy):
        super().__init__(f"{message}: {remedy}", UNAVAILABLE)
        self.reason = message
        self.remedy = remedy


class WorkerFailed(BenchError):
    """A measured process ended early, or found its data wrong."""

    def __init__(self, message):
        super().__init__(message, WRONG_RESULT)
