"""Trainings on many processes, started by mpirun: the same bytes for any number of them, and how they end when one is lost.

Usage: mpi_test.py PROGRAM [unittest's arguments]. Sizes are tiny: what is tested is that bytes agree. The launcher is
OpenMPI's mpirun, or the command in QKV_MPIRUN (MPICH's mpiexec.hydra)."""
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
GPT = "--width 16 --layers 1 --heads 2 --block 64 --dropout 0.1".split()
TASKS = {
    "reverse": "reverse --train-size 96 --validation-size 40 --max-length 6 --hidden 16 --dropout 0.1 --batch 24".split(),
    "rnn": "translate --model rnn --generated-size 100 --vocabulary 120 --hidden 16 --embedding 16 --batch-tokens 600 "
           "--dropout 0.1 --teacher-forcing 0.8".split(),
    "transformer": "translate --model transformer --generated-size 100 --vocabulary 120 --width 16 --inner 32 --heads 2 "
                   "--batch-tokens 600 --dropout 0.1 --beam 2".split(),
    "text": ["text", "--generated-size", "100", "--batch", "24", *GPT],
    "images": "images --data shapes --train-size 100 --width 16 --layers 1 --heads 2 --batch 20 --cutmix 0.5 --shown 0.5 "
              "--dropout 0.1".split(),
    "knowledge": ["knowledge", "--people", "20", "--places", "4", "--documents", "2", "--held", "4", *GPT],
}


OTHER = os.environ.get("QKV_MPIRUN", "")
MPIRUN = shlex.split(OTHER) or ["mpirun", "--oversubscribe", "--bind-to", "none",
                                *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]


def launched(processes, *arguments):
    start = [*MPIRUN, "-n", str(processes)] if processes > 1 else []
    return [*start, PROGRAM, *arguments]


def finished(command, timeout=300, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


def said(process):
    """The lines of qkv among those of the launcher."""
    return [line for line in process.stderr.splitlines() if line.startswith("qkv: ")]


def sums(run):
    """Weights and optimizer of the last checkpoint and every figure, times aside."""
    last = sorted(p for p in (run / "checkpoints").iterdir() if p.name.isdigit())[-1]
    files = [last / "model.safetensors", last / "optimizer.safetensors"]
    average = run / "checkpoints" / "average" / "model.safetensors"
    files += [average] if average.exists() else []
    found = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    for line in (run / "metrics.jsonl").read_text().splitlines() + [(run / "result.json").read_text()]:
        record = json.loads(line)
        found.append({k: v for k, v in record.items() if "second" not in k and k not in ("run", "time")})
    return found


def alive(marker):
    """Processes whose command line names `marker`."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker in (entry / "cmdline").read_text().replace("\0", " "):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


class Temporary(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="qkv-mpi-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def train(self, name, processes, *more, threads=1, task="reverse"):
        run = self.folder / name
        command = launched(processes, "train", *TASKS[task], "--parts", "8", "--epochs", "1", "--log-every", "1",
                           "--threads", str(threads), "--out", str(run), *more)
        result = finished(command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return run, result

    def finished_apart(self, *arguments):
        """Two processes, of which the second sees an empty folder in place of the first one's."""
        hidden = self.folder / "empty"
        hidden.mkdir()
        script = ('if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then exec unshare -m sh -c \'mount --bind "$0" "$1" && shift && '
                  f'exec "$@"\' "{hidden}" "{self.folder}" "$@"; fi; exec "$@"')
        command = launched(2, *arguments)
        at = command.index(PROGRAM)
        result = finished([*command[:at], "sh", "-c", script, "sh", *command[at:]])
        if "unshare" in result.stderr and result.returncode != 0:
            self.skipTest("needs the right to unshare: " + result.stderr)
        return result


class SameBytes(Temporary):
    def check(self, task):
        wanted = None
        for processes in (1, 2, 3, 4, 8):
            for threads in (1, 2):
                run, result = self.train(f"{task}-{processes}-{threads}", processes, threads=threads, task=task)
                found = sums(run)
                wanted = wanted or found
                self.assertEqual(found, wanted, f"{task} on {processes} processes with {threads} threads")
                if processes > 1:
                    line = next(l for l in result.stdout.splitlines() if l.startswith("parts computed"))
                    parts = [int(n) for n in line.split(": ")[1].split(";")[0].split(", ")]
                    self.assertEqual(len(parts), processes)
                    self.assertTrue(all(n > 0 for n in parts), line)
        other, _ = self.train(f"{task}-other", 1, "--seed", "2", task=task)
        self.assertNotEqual(sums(other)[:2], wanted[:2])


for name in TASKS:
    setattr(SameBytes, f"test_{name}", lambda self, task=name: self.check(task))


class Lost(Temporary):
    LONG = ["--epochs", "400", "--checkpoint-every", "1", "--keep", "2", "--eval-every", "10000"]

    def newest(self, run):
        return max([int(p.name) for p in (run / "checkpoints").glob("*") if p.name.isdigit()], default=0)

    def start(self, run, processes, *arguments):
        """A training that has got some updates further."""
        before = self.newest(run)
        process = subprocess.Popen(launched(processes, "train", *arguments), stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, text=True)
        deadline = time.time() + 120
        while time.time() < deadline and process.poll() is None:
            if self.newest(run) > before + 2:
                return process
            time.sleep(0.05)
        self.fail("the training did not get under way: " + process.communicate()[1])

    def workers(self, run):
        """Their pids by rank."""
        found = {}
        for pid in alive(str(run)):
            environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            for word in environment:
                if word.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")):
                    found[int(word.split(b"=")[1])] = pid
        return found

    def end(self, run, process, gone):
        started = time.time()
        _, errors = process.communicate(timeout=60)
        lines = [l for l in errors.splitlines() if l.startswith("qkv: ")]
        if lines or not OTHER:  # MPICH's launcher kills all at once, with words of its own
            self.assertEqual(len(lines), 1, errors)
            self.assertIn(f"process {gone} on ", lines[0])
            self.assertIn(f"qkv train --resume {run}", lines[0])
        self.assertNotEqual(process.returncode, 0)
        self.assertLess(time.time() - started, 10)
        time.sleep(0.5)
        self.assertEqual(alive(str(run)), [])

    def test_killed_and_resumed_on_other_numbers_of_processes(self):
        whole = self.folder / "whole"
        steps = ["--steps", "150", "--parts", "8"]
        arguments = [*TASKS["reverse"], *self.LONG, *steps]
        self.assertEqual(finished(launched(1, "train", *arguments, "--out", str(whole))).returncode, 0)
        run = self.folder / "killed"
        for processes, gone, command in ((3, 1, [*arguments, "--out", str(run)]), (2, 0, ["--resume", str(run)]),
                                         (4, 3, ["--resume", str(run)])):
            process = self.start(run, processes, *command)
            os.kill(self.workers(run)[gone], signal.SIGKILL)
            self.end(run, process, gone)
        last = finished(launched(2, "train", "--resume", str(run)))
        self.assertEqual(last.returncode, 0, last.stderr)
        self.assertEqual(sums(run), sums(whole))
        self.assertEqual(list(self.folder.rglob("*.tmp-*")), [])

    def test_a_signal_saves_and_says_how_to_continue(self):
        run = self.folder / "stopped"
        process = self.start(run, 2, *TASKS["reverse"], *self.LONG, "--parts", "2", "--out", str(run))
        os.kill(self.workers(run)[1], signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertIn(f"saved; continue with: qkv train --resume {run}", errors)
        self.assertNotEqual(process.returncode, 0)

    def test_the_launcher_is_killed(self):
        run = self.folder / "orphans"
        process = self.start(run, 2, *TASKS["reverse"], *self.LONG, "--parts", "2", "--out", str(run))
        process.kill()
        process.communicate()
        deadline = time.time() + 10
        while alive(str(run)) and time.time() < deadline:
            time.sleep(0.1)
        self.assertEqual(alive(str(run)), [])


class Refused(Temporary):
    def refuse(self, command, *parts, **options):
        result = finished(command, **options)
        self.assertNotEqual(result.returncode, 0)
        lines = said(result)
        self.assertEqual(len(lines), 1, result.stderr)
        for part in parts:
            self.assertIn(part, lines[0])

    def two(self, first, second):
        """One process of each command."""
        return [*MPIRUN, "-n", "1", *first, ":", "-n", "1", *second]

    def test_more_processes_than_parts(self):
        run = str(self.folder / "run")
        self.refuse(launched(3, "train", *TASKS["reverse"], "--parts", "2", "--out", run), "--parts 2", "at most 2")
        self.assertFalse(os.path.exists(run))
        self.refuse(launched(2, "train", *TASKS["reverse"], "--parts", "6", "--out", run), "power of two")

    def test_wrong_options_are_said_once(self):
        self.refuse(launched(3, "train", "reverse", "--hiden", "4"), "--hiden")

    def test_other_arguments(self):
        start = [PROGRAM, "train", *TASKS["reverse"], "--out", str(self.folder / "run"), "--seed"]
        self.refuse(self.two([*start, "1"], [*start, "2"]), "process 1 on ", "command", "--seed 2", "--seed 1")

    def test_another_instruction_set(self):
        start = [PROGRAM, "train", *TASKS["reverse"], "--out", str(self.folder / "run")]
        self.refuse(self.two(start, [*start, "--target", "SSE2"]), "process 1 on ", "command")

    def test_another_build(self):
        other = self.folder / "qkv"
        shutil.copy(PROGRAM, other)
        with open(other, "ab") as file:
            file.write(b"another")
        shutil.copy(pathlib.Path(PROGRAM).parent / "libqkv_mpi.so", self.folder)
        start = ["train", *TASKS["reverse"], "--out", str(self.folder / "run")]
        self.refuse(self.two([PROGRAM, *start], [str(other), *start]), "process 1 on ", "build of qkv")

    @unittest.skipIf(OTHER, "MPICH's launcher kills all at once, with words of its own")
    def test_a_process_that_dies_at_start(self):
        start = [PROGRAM, "train", *TASKS["reverse"], "--out", str(self.folder / "run")]
        self.refuse(self.two(start, ["sh", "-c", "kill -9 $$"]), "before each of them had started")

    def test_data_that_are_not_there(self):
        self.refuse(launched(2, "train", "text", "--data", str(self.folder / "none.txt")), "none.txt")

    def test_data_that_one_process_cannot_open(self):
        """The files that process 0 sends have no place on the other."""
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat\n" * 60)
        start = [PROGRAM, "train", "text", "--data", str(text), "--epochs", "1", *GPT, "--out", str(self.folder / "run")]
        elsewhere = ["unshare", "-m", "sh", "-c", f'mount --bind /proc "{self.folder}" && TMPDIR="{self.folder}" exec "$@"',
                     "sh"]
        if finished(["unshare", "-m", "true"]).returncode != 0:
            self.skipTest("needs the right to unshare")
        self.refuse(self.two(start, [*elsewhere, *start]), "process 1 on ", "cannot write")
        self.assertEqual(alive(str(text)), [])

    def test_side_by_side_without_a_shared_folder(self):
        result = self.finished_apart("compare", *TASKS["reverse"], "--attention", "none,dot", "--epochs", "1", "--out",
                                     str(self.folder / "compare"))
        self.assertNotEqual(result.returncode, 0)
        lines = said(result)
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn("process 1 on ", lines[0])
        self.assertIn("need a folder that all processes share", lines[0])

    @unittest.skipUnless(os.geteuid() == 0, "a small disk needs root")
    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "qkv-test", str(disk)], check=True)
        self.addCleanup(subprocess.run, ["umount", str(disk)])
        self.refuse(launched(2, "train", *TASKS["reverse"], "--out", str(disk / "run")), "cannot write")
        self.assertEqual(alive(str(disk)), [])

    def test_not_a_number(self):
        run = self.folder / "run"
        self.refuse(launched(2, "train", *TASKS["reverse"], "--lr", "1000", "--clip", "0", "--optimizer", "sgd",
                             "--epochs", "50", "--out", str(run)), "training stopped at step")


class Defaults(Temporary):
    def test_parts_are_the_next_power_of_two_and_said_first(self):
        run = self.folder / "run"
        result = finished(launched(3, "train", *TASKS["reverse"], "--epochs", "1", "--out", str(run)))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("--parts 4 on 3 processes", result.stdout.splitlines()[0])
        self.assertEqual(json.loads((run / "config.json").read_text())["settings"]["parts"], 4)
        again = self.folder / "again"
        finished([PROGRAM, "train", *TASKS["reverse"], "--epochs", "1", "--parts", "4", "--out", str(again)])
        self.assertEqual(sums(run), sums(again))

    def test_a_process_alone_loads_no_mpi(self):
        maps = finished(["sh", "-c", f'LD_DEBUG=files "{PROGRAM}" train reverse --check 2>&1'])
        self.assertIn("libc.so", maps.stdout)
        self.assertNotIn("libmpi", maps.stdout)
        self.assertNotIn("libqkv_mpi", maps.stdout)

    def test_bench_scale(self):
        result = finished(launched(2, "bench", "scale", "--quick", "--updates", "2", "--threads", "1", "--json"))
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual({row["case"] for row in rows}, {"gpt", "transformer"})
        self.assertEqual({row["processes"] for row in rows}, {1, 2})
        self.assertTrue(all(row["ms_per_update"] > 0 and row["parts"] == 2 for row in rows))

    def test_data_of_the_first_process_reach_the_others(self):
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat and looked at the dog\n" * 60)
        arguments = ["train", "text", "--data", str(text), "--epochs", "1", "--parts", "2", *GPT]
        self.assertEqual(finished([PROGRAM, *arguments, "--out", str(self.folder / "one")]).returncode, 0)
        outside = pathlib.Path(tempfile.mkdtemp(prefix="qkv-mpi-out-"))
        self.addCleanup(shutil.rmtree, outside, ignore_errors=True)
        result = self.finished_apart(*arguments, "--out", str(outside / "two"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sums(outside / "two"), sums(self.folder / "one"))


@unittest.skipIf(OTHER, "its options are OpenMPI's")
@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "network namespaces need root and iproute2")
class TwoMachines(Temporary):
    """Two network namespaces with their own host names, joined by a veth pair: processes talk TCP."""

    def setUp(self):
        super().setUp()
        self.names = [f"qkv{os.getpid()}{side}" for side in "ab"]
        for name in self.names:
            self.ip("netns", "add", name)
            self.addCleanup(self.ip, "netns", "del", name)
        self.ip("link", "add", "qkvtest0", "netns", self.names[0], "type", "veth", "peer", "name", "qkvtest0", "netns",
                self.names[1])
        for number, name in enumerate(self.names, 1):
            self.ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "qkvtest0")
            for device in ("qkvtest0", "lo"):
                self.ip("-n", name, "link", "set", device, "up")
        self.agent = self.folder / "agent"
        self.agent.write_text(f"#!/bin/sh\nshift\nexec ip netns exec {self.names[1]} unshare -u sh -c "
                              '"hostname qkv-second; $*"\n')
        self.agent.chmod(0o755)

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def command(self, *arguments):
        network = [word for kind in ("btl_tcp_if_include", "oob_tcp_if_include")
                   for word in ("--mca", kind, "10.77.0.0/24")]
        return ["ip", "netns", "exec", self.names[0], *MPIRUN, "--mca", "plm_rsh_agent", str(self.agent), "--mca", "btl",
                "tcp,self", *network, "--host", "10.77.0.1:2,10.77.0.2:2", "-n", "4", PROGRAM, *arguments]

    def test_the_same_bytes(self):
        one, _ = self.train("one", 1)
        run = self.folder / "two"
        result = finished(self.command("train", *TASKS["reverse"], "--parts", "8", "--epochs", "1", "--log-every", "1",
                                       "--out", str(run)))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sums(run), sums(one))


class SideBySide(Temporary):
    def test_compare(self):
        arguments = ["compare", *TASKS["reverse"], "--attention", "none,dot", "--seeds", "2", "--epochs", "1", "--json"]
        tables = []
        for processes in (1, 3):
            folder = self.folder / f"compare-{processes}"
            result = finished(launched(processes, *arguments, "--out", str(folder)))
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            tables.append([{k: v for k, v in run.items() if "second" not in k and k != "run"} for run in report["runs"]])
            self.assertTrue((folder / "report.html").exists())
        self.assertEqual(tables[0], tables[1])

    def test_study(self):
        arguments = ["study", "knowledge", "--people", "20", "--places", "4", "--documents", "1", "--held", "4", *GPT,
                     "--epochs", "2", "--moments", "2", "--answer-epochs", "1", "--alone-epochs", "1", "--json"]
        rows = []
        for processes in (1, 3):
            result = finished(launched(processes, *arguments, "--out", str(self.folder / f"study-{processes}")))
            self.assertEqual(result.returncode, 0, result.stderr)
            rows.append([[{k: v for k, v in point.items() if k not in ("machine_hours", "run")} for point in row["points"]]
                         for row in json.loads(result.stdout)["rows"]])
        self.assertEqual(rows[0], rows[1])


if __name__ == "__main__":
    unittest.main()
