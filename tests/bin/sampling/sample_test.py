"""ooc-prep sample: what lies in its file, by a reader written from storage/batches/README.md
alone; what it prints, refuses and leaves."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import programs
from programs import ProgramTest, flip_byte, write_graph

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "storage/dataset"))
from read_dataset import DTYPES, ChunkFile, ceil_div, read_dataset, require_checksum  # noqa: E402

SPLITS = ("none", "train", "valid", "test")


def aligned(offset):
    return ceil_div(offset, 64) * 64


def read_rows(chunk, at, dtype, rows, cols):
    """Rows of a tensor from `at` on, and where they end."""
    out = np.zeros((rows, cols), dtype)
    for col in range(0, cols, 32):
        width = min(32, cols - col)
        stride = width if cols < 8 else ceil_div(width, 8) * 8
        values = np.frombuffer(chunk, dtype, rows * stride, at).reshape(rows, stride)
        assert not values[:, width:].any()
        out[:, col : col + width] = values[:, :width]
        end = at + values.nbytes
        at = aligned(end)
        assert not any(chunk[end:at])
    return out, at


def read_batches(path):
    """The manifest, and each batch: its split, rows by level, edges, weights, tensors by name."""
    manifest = json.loads((path / "manifest.json").read_text())
    checksum = manifest.pop("checksum")
    text = json.dumps(manifest, separators=(",", ":"), ensure_ascii=False)
    require_checksum(text.encode(), int(checksum, 16), "manifest")
    file = ChunkFile(path / "batches", manifest["file"])
    levels = len(manifest["sampled"]["fanouts"]) + 1
    splits = [s["split"] for s in manifest["sections"] for _ in range(s["batches"])]
    codes = {"fp32": 1, "int32": 3, "int64": 4, "uint8": 5, "fp16": 6}
    weights = manifest["dataset"]["edge_data"]["weights"]
    batches = []
    for split, chunk, items in zip(splits, file.chunks, file.items, strict=True):
        count, *rows = struct.unpack_from(f"<{1 + levels}Q", chunk)
        assert items == rows[-1]
        at = aligned(8 * (1 + levels))
        edges = np.frombuffer(chunk, "<u4", 2 * count, at).reshape(count, 2)
        at = aligned(at + edges.nbytes)
        batch = {"split": split, "level_rows": rows, "edges": edges}
        if weights:
            batch["weights"] = np.frombuffer(chunk, "<f4", count, at)
            at = aligned(at + 4 * count)
        for tensor in manifest["tensors"]:
            of = rows[0] if tensor["rows"] == "seeds" else rows[-1]
            dtype = DTYPES[codes[tensor["dtype"]]]
            batch[tensor["name"]], at = read_rows(chunk, at, dtype, of, tensor["cols"])
        assert at == len(chunk)
        batches.append(batch)
    return manifest, batches


class SampleTest(ProgramTest):
    def import_graph(self, *options, **graph):
        raw = write_graph(self.path / "raw", **graph)
        edges = np.load(raw / "edges.npy")
        np.save(raw / "edge_weights.npy", np.arange(len(edges), dtype=np.float32) + 1)
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--quiet", *options)

    def sample(self, *options, fanouts="3,2", output="x.batches"):
        given = ("--fanouts", fanouts, "--quiet", *options)
        return self.succeed("ooc-prep", "sample", "x.ooc", *given, "-o", output)

    def test_batches_are_what_the_dataset_has(self):
        for order, replace in (("natural", ()), ("random", ("--replace",))):
            self.import_graph("--order", order, "--force", vertices=150, features=40, degree=8)
            self.sample("--batch-size", 20, "--epochs", 2, "--force", *replace)
            manifest, batches = read_batches(self.path / "x.batches")
            data = read_dataset(self.path / "x.ooc")
            row_of = np.argsort(data.ids[:, 0])
            weight_of = {}
            for source, row, weight in zip(
                data.edges_in.sources, data.edges_in.rows, data.edges_in.weights
            ):
                weight_of.setdefault((source, row), set()).add(weight)
            self.assertEqual([b["split"] for b in batches],
                             ["train"] * 6 + ["valid"] * 3 + ["test"] * 3)  # fmt: skip
            seeds = {split: [] for split in SPLITS}
            for batch in batches:
                rows = row_of[batch["ids"][:, 0]]
                first, second, last = batch["level_rows"]
                self.assertEqual(len(set(rows)), last)
                np.testing.assert_array_equal(batch["features"], data.features[rows])
                np.testing.assert_array_equal(batch["degrees"], data.degrees[rows])
                np.testing.assert_array_equal(batch["labels"], data.labels[rows[:first]])
                self.assertEqual({SPLITS[s] for s in batch["splits"][:, 0]}, {batch["split"]})
                seeds[batch["split"]] += list(batch["ids"][:first, 0])
                destinations, sources = batch["edges"].T.astype(np.int64)
                self.assertTrue((np.diff(destinations) >= 0).all())
                for row in range(second):
                    degree = data.degrees[rows[row], 0] + data.degrees[rows[row], 2]
                    most = 3 if row < first else 2
                    taken = most if replace and degree else min(most, degree)
                    self.assertEqual((destinations == row).sum(), taken)
                for row, source, weight in zip(destinations, sources, batch["weights"]):
                    self.assertIn(weight, weight_of[rows[source], rows[row]])
            raw = self.path / "raw"
            for split, times in (("train", 2), ("valid", 1), ("test", 1)):
                expected = np.repeat(np.sort(np.load(raw / f"{split}_idx.npy")), times)
                np.testing.assert_array_equal(np.sort(seeds[split]), expected)
            one, other = (np.sort(seeds["train"][i : i + 50]) for i in (0, 50))
            np.testing.assert_array_equal(one, other)
            self.assertNotEqual(seeds["train"][:50], seeds["train"][50:])
            counts = [(data.labels[row_of[one]] == c).sum() for c in range(3)]
            self.assertEqual([label[1] for label in manifest["train_labels"]], counts)
            self.assertEqual(manifest["vertices"], sum(b["level_rows"][-1] for b in batches))
            self.assertEqual(manifest["most"]["edges"], max(len(b["edges"]) for b in batches))

    def test_seeds(self):
        self.import_graph()
        ids = lambda: sorted(  # noqa: E731
            i for b in read_batches(self.path / "x.batches")[1]
            for i in b["ids"][: b["level_rows"][0], 0])  # fmt: skip
        valid = sorted(np.load(self.path / "raw/valid_idx.npy"))
        self.sample("--seeds", "valid")
        self.assertEqual(ids(), valid)
        self.sample("--seeds", "all", "--force")
        self.assertEqual(ids(), list(range(60)))
        np.save(self.path / "some.npy", np.array([59, 3, 3, 17]))
        self.sample("--seeds", "some.npy", "--force")
        self.assertEqual(ids(), [3, 17, 59])
        np.save(self.path / "wrong.npy", np.array([3, 61, 60]))
        given = ("ooc-prep", "sample", "x.ooc", "--fanouts", "3,2", "-o", "y.batches")
        self.fail_with(3, r"vertex ids 60, 61 are not in x.ooc, wrong.npy; ",
                       *given, "--seeds", "wrong.npy")  # fmt: skip
        self.fail_with(3, "nowhere.npy", *given, "--seeds", "nowhere.npy")
        for wrong in ("val", "train,val", "train,train", "train, valid", ""):
            error = "--seeds cannot be '.*'.* " + ("train, valid and test" if wrong else "a path")
            self.fail_with(2, error, *given, "--seeds", wrong)
        self.assertNotIn("y.batches", os.listdir(self.path))

    def test_seeds_by_the_ids_of_the_input(self):
        for kind in ("numbers", "names"):
            names = [f"v{7 * i % 60:02}" if kind == "names" else str(1000 - 3 * i)
                     for i in range(60)]  # fmt: skip
            (self.path / "e.csv").write_text(
                "".join(f"{names[i]},{names[(i + k) % 60]}\n" for i in range(60) for k in (1, 7)))
            (self.path / "t.csv").write_text(
                "id,x,y\n" + "".join(f"{name},{i},{i % 3}\n" for i, name in enumerate(names)))
            (self.path / "some.csv").write_text(f"{names[5]}\n{names[41]}\n")
            self.succeed("ooc-prep", "import", "--edges", "e.csv", "--features", "t.csv:x",
                         "--labels", "t.csv:y", "--id", "id", "--split", "60/20/20", "-o", "x.ooc",
                         "--order", "random", "--force", "--quiet")  # fmt: skip
            self.sample("--seeds", "some.csv", "--force")
            batches = read_batches(self.path / "x.batches")[1]
            found = sorted(x for b in batches for x in b["features"][: b["level_rows"][0], 0])
            self.assertEqual(found, [5, 41], kind)
            (self.path / "wrong.csv").write_text("v99\n" if kind == "names" else "7\n")
            self.fail_with(3, "is not in x.ooc, wrong.csv; ", "ooc-prep", "sample", "x.ooc",
                           "--fanouts", "3", "-o", "y.batches", "--seeds", "wrong.csv")  # fmt: skip

    def test_the_same_seed_makes_the_same_bytes(self):
        self.import_graph()
        read = lambda name: (self.path / name / "batches").read_bytes()  # noqa: E731
        self.sample()
        self.sample("--memory", "300MiB", "--scratch", "s", output="again.batches")
        self.assertEqual(os.listdir(self.path / "s"), [])
        self.sample("--seed", 1, output="other.batches")
        self.assertEqual(read("x.batches"), read("again.batches"))
        self.assertNotEqual(read("x.batches"), read("other.batches"))

    def test_what_is_printed_verified_and_inspected(self):
        self.import_graph()
        given = ("ooc-prep", "sample", "x.ooc", "--fanouts", "3,2", "--batch-size", 5)
        text = self.succeed(*given, "-o", "x.batches").stdout
        self.assertRegex(text, r"train\n +seeds +20\n +batches +4\n +epochs +1\n")
        facts = json.loads(self.succeed(*given, "-o", "y.batches", "--json", "--quiet").stdout)
        self.assertEqual(facts["splits"]["test"], {"seeds": 20, "batches": 4})
        self.assertEqual(facts["sampled"]["fanouts"], [3, 2])
        inspected = json.loads(self.succeed("ooc-inspect", "y.batches", "--json").stdout)
        self.assertEqual(inspected, facts)
        self.assertEqual(self.succeed("ooc-inspect", "x.batches").stdout, text)
        whole = self.succeed("ooc-prep", "verify", "x.batches", "--quiet").stdout
        total = facts["total"]
        self.assertEqual(whole, f"x.batches is whole: 12 batches, {total['vertices']} vertices, "
                                f"{total['edges']} edges\n")  # fmt: skip
        file = self.path / "x.batches/batches"
        flip_byte(file, 4096 + 50)
        damage = r"chunk 0 has the wrong checksum, x.batches/batches, offset 4096; sample the"
        self.fail_with(3, damage, "ooc-prep", "verify", "x.batches")
        flip_byte(file, file.stat().st_size - 30)
        self.fail_with(3, "footer is corrupt, x.batches/batches", "ooc-inspect", "x.batches")

    def test_what_is_refused(self):
        self.import_graph("--quiet")
        self.sample()
        given = ("ooc-prep", "sample", "x.ooc", "-o", "x.batches")
        sampled = (*given, "--fanouts", "3,2", "--force")
        before = (self.path / "x.batches/manifest.json").read_bytes()
        for code, error, command in (
            (2, "output exists, x.batches; use --force", (*given, "--fanouts", "3,2")),
            (2, "--fanouts", given),
            (2, "--fanouts cannot be '0'", (*given, "--fanouts", 0)),
            (2, "--batch-size cannot be '0'", (*sampled, "--batch-size", 0)),
            (2, "--sampler labor with --replace", (*sampled, "--sampler", "labor", "--replace")),
            (2, "--weighted with --replace", (*sampled, "--weighted", "--replace")),
            (2, "--batch-dependency without", (*sampled, "--batch-dependency", 2)),
            (4, "budget of 8 MiB is too small: .*--memory; ", (*sampled, "--memory", "8MiB")),
            (2, "--force replaces batches only", (*sampled[:-4], "x.ooc", *sampled[5:])),
        ):
            with self.subTest(command):
                self.fail_with(code, error, *command)
        self.assertEqual((self.path / "x.batches/manifest.json").read_bytes(), before)
        self.assertEqual(sorted(os.listdir(self.path)), ["raw", "x.batches", "x.ooc"])
        (self.path / "raw/train_idx.npy").unlink()
        for split in ("valid", "test"):
            (self.path / f"raw/{split}_idx.npy").unlink()
        self.succeed("ooc-prep", "import", "raw", "-o", "x.ooc", "--force", "--quiet")
        self.fail_with(3, "no vertex is a seed.*, x.ooc; give --seeds all", *sampled)
        self.sample("--seeds", "all", "--force")

    def test_a_full_disk(self):
        self.import_graph(vertices=3000, features=400)
        error, options = self.small_disk(2 << 20)
        if not options:
            error = "no space left for batches: .* are free, the seeds' rows alone take 4"
        self.fail_with(1, error, "ooc-prep", "sample", "x.ooc", "--fanouts", "3,2", "-o",
                       "small/x.batches", **options)  # fmt: skip
        self.assertEqual(os.listdir(self.path / "small"), [])

    def test_interrupted_it_leaves_nothing(self):
        self.succeed("ooc-prep", "generate", "sbm", "--vertices", 60000, "--edges", 1000000,
                     "--features", 64, "--classes", 4, "-o", "x.ooc", "--quiet")  # fmt: skip
        command = ["sample", "x.ooc", "--fanouts", "10,10", "--epochs", "40", "-o", "x.batches"]
        process = subprocess.Popen([programs.BIN / "ooc-prep", *command], cwd=self.path,
                                   stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        while process.poll() is None and not (self.path / "x.batches.partial").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors, r"ooc-prep: interrupted; [^\n]+\n\Z")
        self.assertEqual(os.listdir(self.path), ["x.ooc"])


if __name__ == "__main__":
    programs.main()
