"""A pool in Ceph with the few methods of a path that the kill loop uses."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

OBJECT_BYTES = 4 << 20


class RadosPool:
    """rados://CEPHPOOL/NAME, in the cluster that CEPH_CONF and CEPH_ARGS of `environment` name, or of this process."""

    def __init__(self, command, ceph_pool, name, environment=None):
        self.command = str(command)
        self.ceph_pool = ceph_pool
        self.name = name
        self.environment = environment or dict(os.environ)

    def __str__(self):
        return f"rados://{self.ceph_pool}/{self.name}"

    def info(self):
        """The facts that `stillpoint info` prints; None where there is no such pool."""
        done = subprocess.run([self.command, "info", "--json", str(self)], capture_output=True, text=True, env=self.environment,
                              check=False)
        if done.returncode == 66:
            return None
        if done.returncode != 0:
            raise OSError(f"stillpoint info {self}: exit code {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def exists(self):
        return self.info() is not None

    def unlink(self, missing_ok=False):
        """Removes its objects, as `rados rm` does."""
        facts = self.info()
        if facts is None:
            if not missing_ok:
                raise FileNotFoundError(str(self))
            return
        import librados

        words = self.environment.get("CEPH_ARGS", "").split()
        user = next((word.removeprefix("--id=") for word in words if word.startswith("--id=")), "admin")
        with librados.Rados(self.environment["CEPH_CONF"], user=f"client.{user}") as rados:
            context = ctypes.c_void_p()
            rados.check(rados.library.rados_ioctx_create(rados.handle, self.ceph_pool.encode(), ctypes.byref(context)), self.ceph_pool)
            for index in reversed(range(-(-facts["file_bytes"] // OBJECT_BYTES))):
                rados.library.rados_remove(context, f"stillpoint.{self.name}.{index:08x}".encode())
            rados.library.rados_ioctx_destroy(context)
