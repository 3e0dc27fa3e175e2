"""ooc-prep import --memory: what the message names is enough, and nothing less is."""

import re

import numpy as np
import programs
import scipy.sparse
from programs import ProgramTest


class BudgetTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(4)

    def named(self, *arguments, memory="1MiB"):
        found = self.fail_with(4, r"buffers take 64 MiB, the program itself \d+ MiB.*; give "
                               r"--memory \d+MiB or more", "ooc-prep", "import", *arguments,
                               "-o", "no.ooc", "--memory", memory)  # fmt: skip
        self.assertFalse((self.path / "no.ooc").exists())
        return int(re.search(r"give --memory (\d+)MiB", found.stderr).group(1)), found.stderr

    def enough(self, *arguments, exact=True):
        """What it names works; a MiB less doesn't, and names the same."""
        least, message = self.named(*arguments)
        if exact:
            self.assertEqual(self.named(*arguments, memory=f"{least - 1}MiB")[0], least)
        self.succeed("ooc-prep", "import", *arguments, "-o", "x.ooc", "--memory", f"{least}MiB",
                     "--force", "--quiet")  # fmt: skip
        self.succeed("ooc-prep", "verify", "x.ooc")
        return message

    def save_graph(self, vertices, edges):
        ends = self.random.integers(0, vertices, (edges, 2))
        np.save(self.path / "e.npy", ends)
        np.save(self.path / "y.npy", np.arange(vertices) % 3)
        return ends

    def test_dense_features_in_every_order(self):
        vertices = 300_000
        self.save_graph(vertices, 200_000)
        np.save(self.path / "x.npy", self.random.random((vertices, 16), dtype=np.float32))
        given = ("--edges", "e.npy", "--features", "x.npy", "--labels", "y.npy", "--split",
                 "60/20/20")  # fmt: skip
        for order in ("natural", "random", "degree", "balanced", "metis"):
            with self.subTest(order):
                message = self.enough(*given, "--order", order)
                self.assertEqual("the new order of vertices 2.3 MiB" in message,
                                 order != "natural")
        only_edges = self.enough("--edges", "e.npy")
        self.assertIn("labels and splits 1.4 MiB", only_edges)

    def test_edges_that_crowd_in_one_block(self):
        """Only sorted edges tell: the message names what suffices from there on."""
        np.save(self.path / "e.npy", self.random.integers(0, 500, (3_200_000, 2), np.int32))
        least, _ = self.named("--edges", "e.npy")
        given = ("ooc-prep", "import", "--edges", "e.npy", "-o", "x.ooc", "--memory")
        found = self.fail_with(4, r"edges of one source span .* needed; give --memory \d+MiB or",
                               *given, f"{least}MiB")  # fmt: skip
        enough = re.search(r"give --memory (\d+)MiB", found.stderr).group(1)
        self.succeed(*given, f"{enough}MiB", "--quiet")

    def test_wide_sparse_features_take_what_their_blocks_do(self):
        """60 vertices with 200,060 sparse columns: 48 MB dense."""
        ends = self.save_graph(60, 200)
        x = scipy.sparse.random(60, 200_060, density=1e-4, format="csr", random_state=1)
        scipy.sparse.save_npz(self.path / "x.npz", x.astype(np.float32))
        ids = self.random.permutation(60) * 7
        np.save(self.path / "i.npy", ids)
        np.save(self.path / "f.npy", ids[ends])
        given = ("--features", "x.npz", "--labels", "y.npy")
        least, _ = self.named("--edges", "e.npy", *given)
        self.enough("--edges", "e.npy", *given)
        self.enough("--edges", "e.npy", *given, "--order", "random")
        self.enough("--edges", "f.npy", *given, "--ids", "i.npy")
        np.save(self.path / "z.npy", np.zeros((60, 1), np.float32))
        self.assertEqual(self.named("--edges", "e.npy", "--features", "z.npy")[0], least)

    def test_text_and_integer_ids(self):
        count = 150_000
        ids = self.random.choice(2**40, count, replace=False)
        ends = self.random.integers(0, count, (count, 2))
        np.savetxt(self.path / "e.csv", ids[ends], "%d", ",", header="a,b", comments="")
        np.savetxt(self.path / "d.csv", ends, "%d", ",")
        rows = np.c_[ids, self.random.integers(0, 9, (count, 2))]
        np.savetxt(self.path / "t.csv", rows, "%d", ",", header="id,x,y", comments="")
        self.enough("--edges", "d.csv", "--undirected", "--order", "random")
        message = self.enough("--edges", "e.csv", "--id", "id", "--features", "t.csv:2",
                              "--labels", "t.csv:y")  # fmt: skip
        self.assertIn("rows on their way 8 MiB", message)
        self.enough("--edges", "e.csv", "--remap-ids", "--order", "degree")
        self.enough("--edges", "e.csv", "--id", "id", "--labels", "t.csv:y", "--order", "metis")

    def test_ids_and_classes_that_are_strings(self):
        count = 120_000
        names = [f"account {n:06} of somebody" for n in self.random.permutation(count)]
        with open(self.path / "e.csv", "w") as file:
            file.writelines(f"{names[a]},{names[b]}\n"
                            for a, b in self.random.integers(0, count, (count // 4, 2)))
        with open(self.path / "t.csv", "w") as file:
            file.writelines(["name,x,topic\n", *(f"{name},1,class{i % 70}\n"
                                                 for i, name in enumerate(names))])  # fmt: skip
        given = ("--edges", "e.csv", "--features", "t.csv:x", "--labels", "t.csv:topic", "--id",
                 "name")  # fmt: skip
        message = self.enough(*given, "--order", "random", exact=False)
        for part in ("the ids", "the vertices of rows", "the names of classes", "splits"):
            self.assertRegex(message, f"{part} [0-9.]+ [KM]iB")


if __name__ == "__main__":
    programs.main()
