"""A set-uid or set-gid program that is linked with the library takes nothing from its caller's environment.

The caller is an ordinary user; the program runs as root, or with a group's rights. Whatever STILLPOINT_* says, it runs volatile,
and makes no file. Its own sp_open works, with the defaults and not with the environment's options."""

import os
import shutil
import stat
import subprocess
import tempfile
import unittest

BUILD = os.environ["STILLPOINT_BUILD"]
OTHER_USER = 65534
GROUP = 1  # of the set-gid program; the caller is not in it
STRANGER = 2
READ_ONLY, NO_PERMISSION = 12, 77  # SP_E_POOL_READ_ONLY, and the tool's exit code for it


def set_uid_works(folder):
    return os.geteuid() == 0 and not os.statvfs(folder).f_flag & os.ST_NOSUID and shutil.which("setpriv")


class SetUid(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        if not set_uid_works(folder.name):
            self.skipTest("needs root, setpriv, and a file system where set-uid counts")
        os.chmod(folder.name, 0o755)
        self.private = os.path.join(folder.name, "private")  # root's; other users may not even list it
        os.mkdir(self.private, 0o700)
        self.public = os.path.join(folder.name, "public")
        os.mkdir(self.public)
        os.chmod(self.public, 0o1777)
        self.program = os.path.join(folder.name, "program")
        shutil.copy(os.path.join(BUILD, "bin", "start_program"), self.program)
        os.chmod(self.program, 0o4755)

    def make_set_gid(self):
        """Instead of set-uid. The private folder is the group's as well."""
        os.chown(self.program, 0, GROUP)
        os.chmod(self.program, 0o2755)
        os.chown(self.private, 0, GROUP)
        os.chmod(self.private, 0o770)

    def assert_tool_refuses(self, pool):
        """Run by root, as the set-uid program is. `check` and `info` only read, and do."""
        tool = os.path.join(BUILD, "bin", "stillpoint")
        run = ["run", "--pool", pool, "--", os.path.join(BUILD, "bin", "start_program")]
        for command, code in ((run, NO_PERMISSION), (["check", pool], 0), (["info", pool], 0)):
            done = subprocess.run([tool, *command], capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, code, f"{command}: {done.stdout}{done.stderr}")

    def assert_refuses(self, pool, reason):
        run = self.run_as_nobody("open", pool)
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertIn(f"error {READ_ONLY}: ", run.stderr)
        self.assertIn(reason, run.stderr)

    def run_as_nobody(self, *words, **variables):
        command = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", self.program, *words]
        return subprocess.run(command, env={"PATH": "/usr/bin:/bin", **variables}, cwd=self.public,
                              capture_output=True, text=True, timeout=120, check=False)

    def test_opens_no_pool_that_the_environment_names(self):
        pool = os.path.join(self.private, "planted.pool")
        run = self.run_as_nobody(STILLPOINT_POOL=pool, STILLPOINT_MEDIUM="memory")
        self.assertEqual((run.stdout, run.stderr, run.returncode), ("start 0 run 1\n", "", 0))
        self.assertEqual(os.listdir(self.private), [])

    def test_makes_no_other_file_that_the_environment_names(self):
        own = os.path.join(self.private, "own.pool")
        report = os.path.join(self.private, "report")
        run = self.run_as_nobody("open", own, STILLPOINT_FAULT="persist:EIO@1,write:EIO@1", STILLPOINT_FAULT_MET=report,
                                 STILLPOINT_LINT_REPORT=report, STILLPOINT_QUIET="1", STILLPOINT_ENGINE="nonsense",
                                 STILLPOINT_OWNER="1")
        self.assertEqual((run.stdout, run.returncode), ("start 1 run 1\n", 0), run.stderr)
        self.assertIn("new pool", run.stderr)  # STILLPOINT_QUIET is not obeyed
        self.assertEqual(os.listdir(self.private), ["own.pool"])
        facts = os.stat(own)
        self.assertEqual((facts.st_uid, stat.S_IMODE(facts.st_mode)), (0, 0o600))

    def test_opens_nothing_that_others_put_where_everybody_may_write(self):
        own = os.path.join(self.private, "own.pool")
        self.assertEqual(self.run_as_nobody("open", own).returncode, 0)
        for name, plant in (("link.pool", os.symlink), ("hard.pool", os.link)):
            planted = os.path.join(self.public, name)
            plant(own, planted)
            self.assert_refuses(planted, "where every user may create files")
            self.assert_tool_refuses(planted)
        os.remove(os.path.join(self.public, "hard.pool"))
        planted = os.path.join(self.public, "copy.pool")
        shutil.copy(own, planted)
        os.chown(planted, OTHER_USER, OTHER_USER)
        os.chown(self.public, 1, 1)
        self.assert_refuses(planted, "belongs to user 65534")
        self.assert_tool_refuses(planted)

    def test_set_gid_programs_are_treated_alike(self):
        self.make_set_gid()
        run = self.run_as_nobody(STILLPOINT_POOL=os.path.join(self.private, "planted.pool"), STILLPOINT_MEDIUM="memory",
                                 STILLPOINT_FAULT_MET=os.path.join(self.private, "report"))
        self.assertEqual((run.stdout, run.stderr, run.returncode), ("start 0 run 1\n", "", 0))
        self.assertEqual(os.listdir(self.private), [])
        own = os.path.join(self.private, "own.pool")
        run = self.run_as_nobody("open", own, STILLPOINT_ENGINE="nonsense", STILLPOINT_QUIET="1")
        self.assertEqual((run.stdout, run.returncode), ("start 1 run 1\n", 0), run.stderr)
        self.assertIn("new pool", run.stderr)
        facts = os.stat(own)
        self.assertEqual((facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)), (OTHER_USER, GROUP, 0o600))
        planted = os.path.join(self.public, "copy.pool")
        shutil.copy(own, planted)
        os.chown(planted, STRANGER, GROUP)
        os.chmod(planted, 0o660)
        self.assert_refuses(planted, f"belongs to user {STRANGER}")


if __name__ == "__main__":
    unittest.main()
