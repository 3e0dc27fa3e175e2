"""What the source must look like. The repository's root is the only argument."""

import collections
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ".").resolve()

# Includes go one way: a folder may include itself and what stands before it, and so may a folder
# in it.
ROOMS = {
    "storage": ["base", "io", "simulate", "format", "stores", "edges", "dataset", "batches",
                "import/decode", "import/formats", "import/ids", "import/rows", "import/edges",
                "import/values", "import"],
    "kernels": ["spec", "sampling", "cuda", "rows", "edges", "dense", "norms", "loss",
                "optimizer", "device"],
    "sched": ["workers", "plan", "plan/passes", "plan/liveness", "plan/cost", "plan/residency",
              "plan/search", "tiers", "stream", "devices", "run", "batch",
              "sampling"],
    "engine": ["graph", "rewrite", "lower", "machine", "model/parts", "model/saga", "model",
               "metrics", "sampling", "train", "batches", "minibatch", "infer"],
    "bin": ["cli", "."],
}  # fmt: skip
FOLDERS = list(ROOMS)
ALL_FOLDERS = FOLDERS + ["tests", "bench"]
MAX_FOLDER_FILES = 30
# The headers of storage/ that code compiled by nvcc may see.
GROUND_HEADERS = {
    "storage/base/byte_size.h",
    "storage/base/errors.h",
    "storage/base/half.h",
    "storage/format/edge_layout.h",
    "storage/format/format.h",
    "storage/format/tensor_layout.h",
    "storage/format/tile.h",
    "storage/base/types.h",
}
HOST_ONLY = re.compile(r"(tbb|oneapi|boost|hdf5|H5\w*|liburing|fmt|spdlog|nlohmann)[./]")

CPP = {".h", ".cc", ".cu", ".cuh"}
SOURCE = CPP | {".py"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100

# Private words, and what to say instead (docs/glossary.md has the twelve that stay). Of sched/ and
# its tests also the words within a name, as in part_blocks.
BANNED = {
    "Piece": "ResidentRange", "Kept": "ResidentSet", "Levels": "ResidentPrefix",
    "KeptRows": "StoredRows", "LeavingRows": "PendingWrites",
    "settle": "verify_and_decode or notify_waiters", "Once": "Precompute",
    "Repeated": "Rematerialized", "came": "on_loaded", "forget": "reset",
    "be_prompt": "reduce_wakeup_latency", "holds": "pins", "makes": "writes",
    "RunState": "StepSeed", "HostCache": "HostStore", "Reuse": "InPlaceAlias",
    "spared": "skipped", "straddles": "crosses_tiles", "behind": "after",
}  # fmt: skip
BANNED_IN_SCHED = {
    "piece": "range", "unit": "io_chunk", "part": "dst_range",
    "nothing": "empty_residency", "again": "rematerialized",
}  # fmt: skip
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
MAX_MEMBERS = 30
MAX_README_WORDS = 1200

# Leftovers, and paths of one machine.
FORBIDDEN = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b"
    r"|(?<![\w.])/(home|root|work)/\w"
)


def files(suffixes, folders=ALL_FOLDERS):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path


def name(path):
    return path.relative_to(ROOT).as_posix()


def includes(path):
    """(line number, included name, quoted rather than in angle brackets)"""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
        if match:
            yield number, match.group(2), match.group(1) == '"'


def long_functions(lines):
    """(first line number, length) of the functions that are too long, by their indentation: in
    clang-format's layout what starts at the depth of a namespace or of a class's members ends with
    a brace at that depth."""
    found = []
    for indent in (0, 2):
        start = None
        for number, line in enumerate(lines, 1):
            depth = len(line) - len(line.lstrip())
            text = line.strip()
            if depth != indent or not text or text.startswith(("#", "//", "*")):
                continue
            if text.startswith("}"):
                if start is not None and number - start + 1 > MAX_FUNCTION_LINES:
                    found.append((start, number - start + 1))
                start = None
            elif re.match(r"(public|private|protected):|(inline )?namespace\b", text):
                start = None
            elif re.match(r"(template|class|struct|enum|union|extern \"C\")\b", text) and (
                "(" not in text
            ):
                start = None
            elif text.endswith(";"):
                start = None
            elif start is None and not re.search(r"=\s*\{", text):
                start = number
    return found


def words_of(identifier):
    """Lower-case words of snake_case and CamelCase names, without a plural's s."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)
    return {word.lower().removesuffix("s") for word in words}


def banned_words(text, in_sched):
    """(line number, name, what to say instead)"""
    code = NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)
    for number, line in enumerate(code.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for found in re.findall(r"[A-Za-z_]\w*", line):
            if found in BANNED:
                yield number, found, BANNED[found]
            elif in_sched:
                for word in words_of(found) & set(BANNED_IN_SCHED):
                    yield number, found, BANNED_IN_SCHED[word]


def class_members(lines):
    """(line number, members) of classes at the depth of a namespace that have functions: fields,
    and public functions but for constructors and assignments. In clang-format's layout members
    stand at depth 2."""
    name_line, name, public = None, "", True
    fields, functions, any_function = 0, 0, False
    for number, line in enumerate(lines, 1):
        if re.match(r"(class|struct) \w+[^;]*\{$", line):
            name_line, fields, functions, any_function = number, 0, 0, False
            name = line.split()[1]
            public = line.startswith("struct")
        elif line.startswith("};") and name_line:
            if any_function:
                yield name_line, fields + functions
            name_line = None
        elif name_line and re.match(r" (public|private|protected):", line):
            public = "public" in line
        elif name_line and re.match(r"  [A-Za-z_~:]", line):
            text = re.sub(r"//.*", "", line).strip()
            if re.match(r"(using|friend|enum|struct|class|template|static constexpr)\b", text):
                continue
            if re.search(r"[\w>~]\(", text.split("=")[0]):
                made = re.match(rf"(explicit )?~?{name}\(|{name}& operator=", text)
                any_function = True
                functions += public and not made
            elif text.endswith(";"):
                fields += 1


class StyleTest(unittest.TestCase):
    def report(self, problems):
        problems = list(problems)
        self.assertTrue(not problems, "\n" + "\n".join(problems))

    def test_there_is_something_to_check(self):
        self.assertGreater(len(list(files(CPP))), 10, f"is {ROOT} the repository?")

    def test_includes_go_one_way(self):
        problems = []
        for rank, folder in enumerate(FOLDERS):
            for path in files(CPP, [folder]):
                for number, included, quoted in includes(path):
                    target = included.split("/")[0]
                    if not quoted:
                        continue
                    if "/" not in included:
                        problems.append(f"{name(path)}:{number}: include {included} from the root")
                    elif target not in FOLDERS[: rank + 1]:
                        problems.append(f"{name(path)}:{number}: {folder} includes {included}")
        self.report(problems)

    def test_rooms_include_one_way(self):
        problems = []
        for folder, rooms in ROOMS.items():
            rank = {(pathlib.PurePosixPath(folder) / room).as_posix(): at
                    for at, room in enumerate(rooms)}  # fmt: skip
            for path in files(CPP, [folder]):
                here = pathlib.PurePosixPath(name(path)).parent.as_posix()
                if here not in rank:
                    problems.append(f"{name(path)}: {here} has no place in ROOMS")
                    continue
                for number, included, quoted in includes(path):
                    target = pathlib.PurePosixPath(included).parent.as_posix()
                    if quoted and rank.get(target, -1) > rank[here]:
                        problems.append(f"{name(path)}:{number}: {here} includes {included}")
        self.report(problems)

    def test_folders_are_small(self):
        counts = collections.Counter(path.parent for path in files(SOURCE | {".saga", ".json"}))
        self.report(
            f"{name(folder)}: {count} files, at most {MAX_FOLDER_FILES}"
            for folder, count in counts.items()
            if count > MAX_FOLDER_FILES
        )

    def test_quoted_includes_exist(self):
        self.report(
            f"{name(path)}:{number}: no {included}"
            for path in files(CPP)
            for number, included, quoted in includes(path)
            if quoted and not (ROOT / included).exists()
        )

    def test_cuda_sources_see_only_kernels_and_ground_headers(self):
        problems = []
        for source in files({".cu", ".cuh"}, FOLDERS):
            seen, todo = set(), [source]
            while todo:
                path = todo.pop()
                for number, included, quoted in includes(path):
                    where = f"{name(source)}: through {name(path)}:{number}: {included}"
                    if not quoted:
                        if HOST_ONLY.match(included):
                            problems.append(where)
                    elif included.startswith("kernels/") or included in GROUND_HEADERS:
                        if included not in seen and (ROOT / included).exists():
                            seen.add(included)
                            todo.append(ROOT / included)
                    else:
                        problems.append(where)
        self.report(problems)

    def test_headers_are_guarded(self):
        self.report(
            f"{name(path)}: no #pragma once"
            for path in files({".h", ".cuh"})
            if not re.search(r"^#pragma once$", path.read_text(), re.MULTILINE)
        )

    def test_files_are_small(self):
        self.report(
            f"{name(path)}: {lines} lines, at most {MAX_FILE_LINES}"
            for path in files(SOURCE)
            if (lines := len(path.read_text().splitlines())) > MAX_FILE_LINES
        )

    def test_functions_are_small(self):
        self.report(
            f"{name(path)}:{start}: a function of {length} lines, at most {MAX_FUNCTION_LINES}"
            for path in files(CPP)
            if not path.name.endswith("_test.cc")
            for start, length in long_functions(path.read_text().splitlines())
        )

    def test_classes_are_small(self):
        self.report(
            f"{name(path)}:{number}: a class of {members} members, at most {MAX_MEMBERS}"
            for path in files({".h", ".cc"}, FOLDERS)
            for number, members in class_members(path.read_text().splitlines())
            if members > MAX_MEMBERS
        )

    def test_words_are_the_field_s(self):
        self.report(
            f"{name(path)}:{number}: {found}; say {instead}"
            for path in files(CPP)
            for number, found, instead in banned_words(
                path.read_text(), name(path).startswith(("sched/", "tests/sched/")))
        )  # fmt: skip

    def test_readmes_are_short(self):
        self.report(
            f"{name(path)}: {count} words, at most {MAX_README_WORDS}"
            for path in [ROOT / "README.md", *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
            if "build" not in path.parts
            and (count := len(re.findall(r"\S*\w\S*", path.read_text()))) > MAX_README_WORDS
        )

    def test_tables_are_what_was_measured(self):
        command = [ROOT / "bench/tables.py", "--check"]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_lines_are_short(self):
        self.report(
            f"{name(path)}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
            for path in files(SOURCE)
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if len(line) > MAX_COLUMNS
        )

    def test_names_of_files(self):
        self.report(
            f"{name(path)}: file names are snake_case"
            for path in files(SOURCE)
            if not re.fullmatch(r"[a-z0-9_]+", path.stem)
        )

    def test_no_leftovers(self):
        self.report(
            f"{name(path)}:{number}: {match.group(0)}"
            for path in [*files(SOURCE | {".md", ".txt"}), *ROOT.glob("*.md")]
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if (match := FORBIDDEN.search(line))
        )

    def test_every_folder_has_a_page(self):
        self.report(
            f"{folder}/README.md is missing"
            for folder in ALL_FOLDERS
            if (ROOT / folder).is_dir() and not (ROOT / folder / "README.md").exists()
        )


class BannedWordsTest(unittest.TestCase):
    def test_names_are_found_but_not_english(self):
        text = 'Kept kept; // Kept\nauto x = "Kept"; int part_blocks, parts, apart;\n'
        self.assertEqual(list(banned_words(text, False)), [(1, "Kept", "ResidentSet")])
        self.assertEqual([found for _, found, _ in banned_words(text, True)],
                         ["Kept", "part_blocks", "parts"])  # fmt: skip


class ClassMembersTest(unittest.TestCase):
    def test_fields_and_public_functions_count(self):
        text = ["class A {", " public:", "  int f();", "  A() = default;", " private:",
                "  int g();", "  int a_ = f(3);", "  std::vector<int> b_;  // c(d)", "};",
                "struct B {", "  int a = 0;", "};"]  # fmt: skip
        self.assertEqual(list(class_members(text)), [(1, 3)])


class LongFunctionsTest(unittest.TestCase):
    def test_a_long_function_is_found_at_both_depths(self):
        body = ["  x();"] * 80
        free = ["namespace a {", "", "int f(int a,", "      int b) {", *body, "}", "}  // a"]
        self.assertEqual(long_functions(free), [(3, 83)])
        member = ["class A {", " public:", "  int f() {", *["    x();"] * 80, "  }", "};"]
        self.assertEqual(long_functions(member), [(3, 82)])

    def test_what_is_no_function_is_left_alone(self):
        fields = ["struct A {", *["  int a = 0;"] * 80, "};"]
        table = ["const int kTable[] = {", *["    1,"] * 80, "};"]
        short = ["int f() {", "  x();", "}", ""] * 30
        self.assertEqual(long_functions(fields + table + short), [])


if __name__ == "__main__":
    unittest.main()
