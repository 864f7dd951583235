"""`stillpoint completion` makes a completion from the command line's own tables, and each shell that is here reads it."""

import shutil
import subprocess
import unittest

from command_line import TOOL, CommandLineTest

ASK_BASH = """
source completion.bash
COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
[[ "{last_is_empty}" == yes ]] && COMP_WORDS+=("") && ((++COMP_CWORD))
_stillpoint
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# Completes by its own terminal, as a user would: keys in, the list out.
ASK_ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f -i
zpty -w shell 'PS1= RPS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; zstyle ":completion:*" list-prompt ""; LISTMAX=0'
zpty -w shell 'bindkey "^I" complete-word; print READY'
zpty -r -m shell line '*READY*READY*'
zpty -w -n shell $'{line}\t\t'
all=
repeat 100; do sleep 0.05; zpty -r -t shell part && all+=$part; [[ $all == *{expected}* ]] && break; done
print -rn -- "$all"
zpty -d shell
"""


class Completion(CommandLineTest):
    def script(self, shell, name):
        done = self.stillpoint("completion", shell)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (self.folder / name).write_text(done.stdout)
        return done.stdout

    def bash(self, words, last_is_empty=False):
        text = ASK_BASH.format(words=words, last_is_empty="yes" if last_is_empty else "no")
        done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, check=True, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash(self):
        self.script("bash", "completion.bash")
        self.assertTrue({"run", "info", "check", "lint", "c++"} <= set(self.bash("stillpoint", last_is_empty=True)))
        self.assertNotIn("tables", self.bash("stillpoint", last_is_empty=True))
        self.assertEqual(self.bash("stillpoint in"), ["info"])
        self.assertEqual(self.bash("stillpoint --v"), ["--version"])
        self.assertEqual(self.bash("stillpoint info --js"), ["--json"])
        self.assertEqual(self.bash("stillpoint -q check --j"), ["--json"])
        self.assertIn("pmthreads", self.bash("stillpoint run --engine", last_is_empty=True))
        self.assertEqual(self.bash("stillpoint run --engine = pron"), ["pronto"])
        self.assertEqual(self.bash("stillpoint run --pool", last_is_empty=True), [])  # bash's own completion of names of files
        self.assertEqual(self.bash("stillpoint run --pool x -- ./bank --js"), [])

    def test_every_option_of_help_is_completed(self):
        everything = self.script("bash", "completion.bash")
        for command in ("run", "info", "crashtest", "convert"):
            helped = self.stillpoint(command, "--help").stdout
            offered = set(self.bash(f"stillpoint {command} --"))
            for word in {word.strip(",") for line in helped.splitlines() if line.startswith("  -") for word in line.split()[:1]}:
                for name in (one for one in word.split(",") if one.startswith("--")):
                    self.assertIn(name, offered, command)
        self.assertNotIn("\t", everything)

    def test_an_unknown_shell_is_refused(self):
        self.assert_refused(self.stillpoint("completion", "tcsh"), 64, "bash, zsh or fish")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        self.script("zsh", "_stillpoint")
        for line, expected in (("stillpoint inf", "info"), ("stillpoint info --js", "--json"), ("stillpoint run --engine=pron", "pronto")):
            ask = ASK_ZSH.replace("{line}", line).replace("{expected}", expected)
            done = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, check=False,
                                  cwd=self.folder, timeout=60)
            self.assertIn(expected, done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.script("fish", "stillpoint.fish")
        for line, expected in (("stillpoint inf", "info"), ("stillpoint info --js", "--json"), ("stillpoint run --engine pron", "pronto")):
            ask = ["fish", "--no-config", "-c", f"source stillpoint.fish; complete -C '{line}'"]
            done = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=self.folder, env={"HOME": str(self.folder),
                                  "PATH": "/usr/bin:/bin"})
            self.assertIn(expected, done.stdout)


if __name__ == "__main__":
    unittest.main()
