"""cuSPARSE's side of gather.py: cusparseSpMM of a CSR matrix of ones, fp32, rows of both dense
matrices beside each other. Descriptors, buffers and preprocessing are made once for each algorithm;
the fastest one is kept.

    cusparse_worker.py DIR COLUMNS

Answers the first line of its own accord, then `step N` (mean seconds of N products) and
`compare FILE` (the largest difference of its sums and those of the file, over the largest sum).
"""

import ctypes
import pathlib
import sys

import answers
import numpy as np
import torch

ALGORITHMS = {"default": 0, "CSR_ALG1": 4, "CSR_ALG2": 6, "CSR_ALG3": 12}
FP32, INDEX_32, BASE_ZERO, ORDER_ROW, PLAIN = 0, 2, 0, 2, 0
TRIED = 3
INT, WORD, POINTER = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p


def find_library():
    """The one that torch brings, else the system's."""
    name = "libcusparse.so.12"
    try:
        import nvidia

        folders = list(nvidia.__path__)
    except ImportError:
        folders = []
    folders.append(pathlib.Path(torch.__file__).parent / "lib")
    found = [path for folder in folders for path in pathlib.Path(folder).rglob(name)]
    return ctypes.CDLL(str(found[0]) if found else name)


def pointer(tensor):
    return POINTER(tensor.data_ptr())


class Products:
    """All algorithms on one graph."""

    def __init__(self, directory, columns):
        self.library = find_library()
        self.handle = POINTER()
        self.check("cusparseCreate", ctypes.byref(self.handle))
        stream = torch.cuda.current_stream().cuda_stream
        self.check("cusparseSetStream", self.handle, POINTER(stream))
        starts = np.fromfile(directory / "starts.bin", np.int64)
        self.vertices, self.edges, self.columns = len(starts) - 1, int(starts[-1]), columns
        self.starts = torch.from_numpy(starts.astype(np.int32)).cuda()
        self.neighbours = torch.from_numpy(
            np.fromfile(directory / "neighbours.bin", np.int32)).cuda()
        self.ones = torch.ones(self.edges, device="cuda")
        rows = torch.arange(self.vertices, device="cuda")[:, None] * 1009
        self.x = rows + torch.arange(columns, device="cuda")[None, :] * 9176
        self.x = (self.x & 0xffff).float() / 32768 - 1
        self.sums = torch.zeros_like(self.x)
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        self.call, self.sparse = None, None

    def check(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def make_sparse(self):
        sparse = POINTER()
        self.check("cusparseCreateCsr", ctypes.byref(sparse), WORD(self.vertices),
                   WORD(self.vertices), WORD(self.edges), pointer(self.starts),
                   pointer(self.neighbours), pointer(self.ones), INT(INDEX_32), INT(INDEX_32),
                   INT(BASE_ZERO), INT(FP32))
        return sparse

    def make_dense(self, tensor):
        dense = POINTER()
        self.check("cusparseCreateDnMat", ctypes.byref(dense), WORD(self.vertices),
                   WORD(self.columns), WORD(self.columns), pointer(tensor), INT(FP32),
                   INT(ORDER_ROW))
        return dense

    def prepare(self, algorithm):
        """What does one product."""
        common = (self.handle, INT(PLAIN), INT(PLAIN), ctypes.byref(self.one), self.make_sparse(),
                  self.make_dense(self.x), ctypes.byref(self.zero), self.make_dense(self.sums),
                  INT(FP32), INT(algorithm))
        size = ctypes.c_size_t()
        self.check("cusparseSpMM_bufferSize", *common, ctypes.byref(size))
        buffer = torch.empty(max(size.value, 16), dtype=torch.uint8, device="cuda")
        self.check("cusparseSpMM_preprocess", *common, pointer(buffer))
        return lambda: self.check("cusparseSpMM", *common, pointer(buffer))

    def choose(self):
        """Seconds of every algorithm, or why it has none."""
        tried = {}
        for name, number in ALGORITHMS.items():
            try:
                (call, preparing), reply = self.timed_prepare(number), {}
                self.seconds_of(call, 1)
                reply["seconds"] = min(self.seconds_of(call, 1) for _ in range(TRIED))
                reply["preprocess_seconds"] = preparing
            except RuntimeError as error:
                tried[name] = {"error": str(error).splitlines()[0][:200]}
                continue
            best = min((other["seconds"] for other in tried.values() if "seconds" in other),
                       default=float("inf"))
            if reply["seconds"] < best:
                self.call, chosen = call, name
            tried[name] = reply
        if self.call is None:
            return {"error": f"no algorithm works: {tried}"}
        return {"algorithms": tried, "chosen": chosen}

    def timed_prepare(self, number):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call = self.prepare(number)
        end.record()
        torch.cuda.synchronize()
        return call, begin.elapsed_time(end) / 1e3

    @staticmethod
    def seconds_of(call, count):
        """The mean."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3 / count

    def compare(self, path):
        self.call()
        theirs = torch.from_numpy(np.fromfile(path, np.float32)).view(self.sums.shape).cuda()
        return float((theirs - self.sums).abs().max() / self.sums.abs().max())


def serve():
    products = Products(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
    yield products.choose()
    for line in sys.stdin:
        what, argument = line.split(maxsplit=1)
        if what == "compare":
            yield {"difference": products.compare(argument.strip())}
        else:
            yield {"seconds": products.seconds_of(products.call, int(argument))}


if __name__ == "__main__":
    answers.give(serve())
