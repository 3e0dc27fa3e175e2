"""Budgets through the real programs: kept, whatever the policy; the same results; and what is said
where they cannot be."""

import json
import os
import re

import numpy as np

import programs
from programs import MOVED, ZEROS, ProgramTest
from train_test import curve, metrics

MIB = 1 << 20


class MemoryTest(ProgramTest):
    def setUp(self):
        super().setUp()
        # Features of 37 MiB, hidden layers of 18 MiB each.
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 150000, "--edges", 600000),
            *("--features", 64, "--classes", 5, "-o", "x.ooc", "--quiet"),
        )

    def train(self, memory, *arguments, run="run", epochs=3):
        self.succeed(
            *("ooc-train", "x.ooc", "--hidden", 32, "--epochs", epochs, "--threads", 2),
            *("--host-memory", memory, "--run-dir", run, "--force", "--quiet"),
            *arguments,
        )
        return json.loads((self.path / run / "summary.json").read_text())

    def least_of(self, *command, memory=1):
        """The least memory that works, in MiB, as the program names it when given too little."""
        pattern = r"the least that works is (\d+) MiB"
        result = self.fail_with(4, pattern, *command, "--host-memory", f"{memory}MiB")
        return int(re.search(pattern, result.stderr)[1])

    def test_a_budget_is_kept_and_changes_nothing_but_bytes(self):
        self.train("auto")
        expected = curve(self.path / "run")
        for policy in ("none", "lru", "dp", "lp"):
            for memory in (64, 80):
                with self.subTest(policy=policy, memory=memory):
                    summary = self.train(f"{memory}MiB", "--cache-policy", policy)
                    self.assertLessEqual(summary["peak_host_bytes"], memory * MIB)
                    self.assertEqual(curve(self.path / "run"), expected)
                    last = metrics(self.path / "run")[-1]
                    self.assertEqual(sum(last[key] for key in MOVED + ZEROS),
                                     summary["plan_predicted_bytes"])
                    self.assertGreater(last["bytes_read"], 0)
                    for key in MOVED + ZEROS:
                        self.assertEqual(sum(p[key] for p in last["passes"]), last[key])
                    self.assertNotIn("scratch", os.listdir(self.path / "run"))

    def test_a_budget_is_kept_where_a_step_evaluates(self):
        options = ("--dropout", 0)
        self.train("auto", *options, epochs=12)
        expected = curve(self.path / "run")
        for memory in (64, 80):
            summary = self.train(f"{memory}MiB", *options, epochs=12)
            self.assertLessEqual(summary["peak_host_bytes"], memory * MIB)
            self.assertEqual(curve(self.path / "run"), expected)
            plan = json.loads((self.path / "run/plan.json").read_text())
            self.assertEqual(len(plan["epoch"]["sections"]), 1)
            for line in metrics(self.path / "run"):  # two steps in the first
                for key in MOVED + ZEROS:
                    self.assertEqual(sum(p[key] for p in line["passes"]), line[key])

    def test_a_dataset_is_read_in_any_way(self):
        self.train("auto", "--io", "threads")
        expected = curve(self.path / "run")
        for memory, ways in (("auto", ("auto", "mapped")), ("64MiB", ("auto", "mapped"))):
            for way in ways:
                with self.subTest(memory=memory, io=way):
                    summary = self.train(memory, "--io", way)
                    self.assertEqual(curve(self.path / "run"), expected)
                    maps = way == "mapped" or memory == "auto"
                    self.assertEqual(summary["io"] == "mapped", maps)
                    if memory == "auto":
                        continue
                    self.assertLessEqual(summary["peak_host_bytes"], 64 * MIB)
                    last = metrics(self.path / "run")[-1]
                    self.assertEqual(sum(last[key] for key in MOVED + ZEROS),
                                     summary["plan_predicted_bytes"])
        infer = ("ooc-infer", "x.ooc", "--run", "run", "--threads", 2, "--quiet")
        self.succeed(*infer, "--io", "threads", "-o", "threads.npy")
        for memory in ("auto", "76MiB"):
            self.succeed(*infer, "--io", "mapped", "-o", "mapped.npy", "--host-memory", memory,
                         "--force")
            results = [np.load(self.path / f"{name}.npy") for name in ("threads", "mapped")]
            self.assertTrue(np.array_equal(*results))
        self.succeed("ooc-train", "--resume", "run", "--epochs", 4, "--io", "uring", "--quiet")

    def test_a_damaged_chunk_is_found_where_it_is_mapped(self):
        features = self.path / "x.ooc" / "features"
        damaged = bytearray(features.read_bytes())
        damaged[5 << 20] ^= 1
        features.write_bytes(damaged)
        for memory in ("auto", "64MiB"):
            self.fail_with(
                *(3, "checksum.*features", "ooc-train", "x.ooc", "--io", "mapped"),
                *("--hidden", 32, "--host-memory", memory, "--force", "--run-dir", "run"),
            )

    def test_a_budget_too_small_names_one_that_works(self):
        least = self.least_of("ooc-train", "x.ooc", "--hidden", 32, "--threads", 2)
        self.assertEqual(os.listdir(self.path), ["x.ooc"])
        for _ in range(3):
            summary = self.train(f"{least}MiB", epochs=2)
            self.assertLessEqual(summary["peak_host_bytes"], least * MIB)

    def test_a_run_goes_on_under_another_budget(self):
        self.train("auto", run="whole", epochs=6)
        self.train("64MiB", "--cache-policy", "none", epochs=2)
        junk = self.path / "run" / "scratch"
        junk.mkdir()  # as a kill leaves it
        (junk / "junk").write_text("x")
        (self.path / "elsewhere").mkdir()
        self.succeed(
            *("ooc-train", "--resume", "run", "--epochs", 4, "--host-memory", "84MiB"),
            *("--cache-policy", "lp", "--scratch", "elsewhere", "--quiet"),
        )
        self.assertEqual(os.listdir(self.path / "elsewhere"), [])
        self.succeed(
            *("ooc-train", "--resume", "run", "--epochs", 6, "--scratch", "", "--quiet"),
            *("--host-memory", "auto"),
        )
        self.assertEqual(curve(self.path / "run"), curve(self.path / "whole"))
        self.assertNotIn("scratch", os.listdir(self.path / "run"))

    def test_a_long_run_takes_no_more_memory_than_a_short_one(self):
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 1000, "--edges", 4000),
            *("--features", 8, "--classes", 5, "-o", "small.ooc", "--quiet"),
        )
        train = ("ooc-train", "small.ooc", "--hidden", 8, "--threads", 2, "--run-dir", "run")
        least = self.least_of(*train)
        epochs = 12000
        for arguments in (
            (*train, "--host-memory", f"{least}MiB", "--epochs", epochs, "--eval-every", epochs),
            ("ooc-train", "--resume", "run", "--epochs", epochs + 1),
        ):
            self.succeed(*arguments, "--checkpoint-every", epochs, "--quiet")
            summary = json.loads((self.path / "run/summary.json").read_text())
            self.assertLessEqual(summary["peak_host_bytes"], least * MIB)

    def test_inference_keeps_a_budget_too(self):
        self.train("auto", "--model", "sage")
        infer = ("ooc-infer", "x.ooc", "--run", "run", "--threads", 2)
        self.succeed(*infer, "-o", "all.npy")
        self.succeed(*infer, "-o", "little.npy", "--host-memory", "64MiB")
        everything, little = (np.load(self.path / f"{name}.npy") for name in ("all", "little"))
        self.assertTrue(np.array_equal(everything, little))
        self.least_of(*infer, "-o", "x.npy")
        self.assertNotIn("x.npy", os.listdir(self.path))

    def test_inference_of_a_large_model_keeps_the_least_that_it_names(self):
        self.succeed(
            *("ooc-prep", "generate", "sbm", "--vertices", 20000, "--edges", 40000),
            *("--features", 64, "--classes", 5, "-o", "wide.ooc", "--quiet"),
        )
        self.succeed(  # parameters of 4.3 MiB
            *("ooc-train", "wide.ooc", "--hidden", 1024, "--layers", 3, "--epochs", 1),
            *("--run-dir", "run", "--quiet"),
        )
        for model in (("--run", "run"), ("--checkpoint", "run/checkpoint-1.h5")):
            with self.subTest(model=model):
                infer = ("ooc-infer", "wide.ooc", *model, "--what", "embeddings", "--threads", 2)
                infer += ("-o", "wide.npy", "--force")
                least = self.least_of(*infer)
                # The same whatever is given, but for what the process happens to hold.
                self.assertAlmostEqual(self.least_of(*infer, memory=least * 3 // 4), least, delta=8)
                infer += ("--host-memory", f"{least}MiB", "--json")
                facts = json.loads(self.succeed(*infer).stdout)
                self.assertLessEqual(facts["peak_host_bytes"], least * MIB)

    def test_inference_of_vertices_with_long_names_keeps_the_least_that_it_names(self):
        names = [f"{i:06d}" + "x" * 794 for i in range(50000)]  # 38 MiB
        raw = self.path / "raw"
        raw.mkdir()
        with open(raw / "edges.csv", "w") as file:
            file.writelines(f"{a},{b}\n" for a, b in zip(names, names[1:] + names[:1]))
        for begin, split in enumerate(("train", "valid", "test")):
            part = names[begin * 100 : begin * 100 + 100]
            (raw / f"{split}_idx.csv").write_text("".join(f"{name}\n" for name in part))
        np.save(raw / "features.npy", np.zeros((len(names), 8), np.float32))
        np.save(raw / "labels.npy", np.arange(len(names)) % 3)
        self.succeed(
            *("ooc-prep", "import", raw, "--rows-sorted", "--order", "random", "--undirected"),
            *("-o", "names.ooc", "--quiet"),
        )
        self.succeed("ooc-train", "names.ooc", "--epochs", 1, "--run-dir", "run", "--quiet")
        for output in ("out.npy", "out.h5"):
            with self.subTest(output):
                infer = ("ooc-infer", "names.ooc", "--run", "run", "--threads", 2, "-o", output)
                least = self.least_of(*infer)
                infer += ("--host-memory", f"{least}MiB", "--json")
                facts = json.loads(self.succeed(*infer).stdout)
                self.assertLessEqual(facts["peak_host_bytes"], least * MIB)

    def test_metrics_say_what_a_pass_waited_for(self):
        self.train("64MiB")
        for line in metrics(self.path / "run"):
            self.assertGreater(line["compute_busy"], 0)
            self.assertLessEqual(line["compute_busy"], 1)
            for part in (line, *line["passes"]):
                waits = [part[f"{cause}_wait_seconds"] for cause in ("read", "write", "compute")]
                self.assertGreaterEqual(min(waits), 0)
                self.assertLessEqual(sum(waits), part["seconds"])
            computed = sum(p["compute_seconds"] for p in line["passes"])
            # Its seconds begin a little before those that are written.
            busy = computed / (2 * line["seconds"])
            self.assertAlmostEqual(line["compute_busy"], busy, delta=0.2 * busy)
        self.assertGreater(metrics(self.path / "run")[-1]["read_wait_seconds"], 0)

    def plan(self, *options, **more):
        return self.succeed("ooc-train", "x.ooc", "--plan", "--threads", 2, *options, **more).stdout

    def test_by_default_memory_is_limited_by_what_is_free(self):
        with open("/proc/meminfo") as file:
            text = file.read()
        total = 1024 * int(re.search(r"MemTotal: +(\d+) kB", text)[1])
        budget = json.loads(self.plan("--json"))["host_memory"]
        self.assertGreater(budget, 64 * MIB)
        self.assertLess(budget, total)

    def test_predictions_are_made_of_the_rates_that_were_measured(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.path / "cache")}
        budget = ("--json", "--host-memory", "200MiB")
        once = json.loads(self.plan(*budget, env=environment))
        (kept,) = (self.path / "cache" / "ooc").iterdir()
        rates = json.loads(kept.read_text())
        self.assertEqual({name: once["rates"][name] for name in rates}, rates)
        slow = {name: rate / 100 for name, rate in rates.items()}
        kept.write_text(json.dumps(slow))
        again = json.loads(self.plan(*budget, env=environment))
        self.assertEqual({name: again["rates"][name] for name in rates}, slow)
        self.assertGreater(again["epoch"]["seconds"], 20 * once["epoch"]["seconds"])

    def test_the_table_of_a_plan_says_what_its_json_does(self):
        size = r"([\d.]+ (?:B|[KMG]iB))"

        def bytes_of(text):
            number, unit = text.split()
            return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]

        budget = ("--host-memory", "64MiB", "--cache-policy", "lp")
        epoch = json.loads(self.plan("--json", *budget))["epoch"]
        before, text = self.plan(*budget).split("Every epoch:")
        self.assertRegex(before, rf"all of it moves {size}; .* no plan moves less than {size}")
        self.assertNotIn("epoch", before.split("first epoch:")[-1])
        self.assertIn("what an epoch after the first does, strategy lp", text)
        passes = [line for line in text.splitlines() if re.match(r" +\d+ \S", line)]
        planned = [p for section in epoch["sections"] for p in section["passes"]]
        self.assertEqual(len(passes), len(planned))
        for line, expected in zip(passes, planned):
            self.assertIn(expected["name"], line)
            sizes = re.search(rf"{size} +{size} +{size} +[\d.e-]+ s$", line).groups()
            for shown, key in zip(sizes, ("memory_bytes", "bytes_read", "bytes_written")):
                delta = 0.05 * expected[key] + 1  # two digits are shown, or more
                self.assertAlmostEqual(bytes_of(shown), expected[key], delta=delta)
        moves = re.search(rf"an epoch moves {size}; .* none moves less than {size} "
                          r"or takes less than ([\d.e-]+) s", text)  # fmt: skip
        moved = epoch["bytes_read"] + epoch["bytes_written"]
        self.assertAlmostEqual(bytes_of(moves[1]), moved, delta=0.01 * moved)
        self.assertAlmostEqual(bytes_of(moves[2]), epoch["bound_bytes"], delta=0.01 * moved)
        self.assertLessEqual(float(moves[3]), 1.01 * epoch["seconds"])

    def test_a_wrong_size_says_what_is_taken(self):
        self.fail_with(
            *(2, "it takes a size such as 512MiB, 4GiB or 1.5G, or auto", "ooc-train", "x.ooc"),
            *("--host-memory", "lots"),
        )


class AbsentGraphTest(ProgramTest):
    COUNTS = "vertices=50M,edges=1.5G,features=128,classes=64"

    def test_a_graph_that_is_not_there_is_planned_for(self):
        plan = json.loads(
            self.succeed(
                *("ooc-train", "--plan", "--json", "--graph", self.COUNTS, "--host-memory", "4GiB"),
            ).stdout
        )
        self.assertLess(plan["arena_bytes"], 4 << 30)
        # At least the features, once, and what two layers keep.
        self.assertGreater(plan["bytes_read_per_epoch"], 50e6 * 128 * 4)
        text = self.succeed("ooc-train", "--plan", "--graph", self.COUNTS).stdout
        self.assertIn("Once, before the first epoch", text)
        self.assertEqual(os.listdir(self.path), [])

    def test_no_more_bytes_than_one_can_work_out_by_hand(self):
        """Of the training alone; GB for each order in which one may multiply and sum."""
        command = ("ooc-train", "--plan", "--json", "--graph", self.COUNTS, "--host-memory", "8GiB",
                   "--cache-policy", "lp", "--epochs", 3, "--threads", 2,
                   *self.rates_of_a_machine())  # fmt: skip
        for by_hand, order in (
            (450, ("--rewrites=-order,-hoisting",)),
            (230, ("--input-dropout", 0.5)),
            (145, ()),
        ):
            with self.subTest(order):
                plan = json.loads(self.succeed(*command, *order).stdout)
                training = plan["epoch"]["sections"][0]["passes"]
                moved = sum(p["bytes_read"] + p["bytes_written"] for p in training)
                self.assertLessEqual(moved, 1.1e9 * by_hand)

    def test_plans_are_made_by_rates_that_are_given(self):
        command = ("ooc-train", "--plan", "--json", "--graph", self.COUNTS, "--host-memory", "8GiB")
        plan = json.loads(self.succeed(*command, *self.rates_of_a_machine()).stdout)
        self.assertEqual({name: plan["rates"][name] for name in programs.RATES}, programs.RATES)
        rates = self.rates_of_a_machine(gather=0)
        self.fail_with(3, "gather is no positive number, .*rates.json", *command, *rates)
        rates = self.rates_of_a_machine(speed=7)
        self.fail_with(3, "no rate is called speed, .*rates.json", *command, *rates)
        rates[1].write_text("fast")
        self.fail_with(3, "not a file of rates, .*rates.json", *command, *rates)
        self.fail_with(3, "absent.json", *command, "--rates", "absent.json")

    def test_what_is_no_count_is_refused(self):
        for counts in ("vertices=50M", self.COUNTS + ",edges=-1", self.COUNTS + ",colour=3"):
            with self.subTest(counts):
                self.fail_with(
                    *(2, "it takes vertices=N,edges=N", "ooc-train", "--plan", "--graph", counts)
                )
        self.fail_with(2, "--graph without --plan", "ooc-train", "--graph", self.COUNTS)
        rows = self.COUNTS + ",block-rows=3"
        self.fail_with(2, "--block-rows 3 is not", "ooc-train", "--plan", "--graph", rows)
        fraction = self.COUNTS + ",edges=4.1M"  # no float times a million is that whole
        self.succeed("ooc-train", "--plan", "--graph", fraction)


if __name__ == "__main__":
    programs.main()
