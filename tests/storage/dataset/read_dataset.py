"""Reads a whole dataset into NumPy arrays: a second reader, written from storage/format/README.md
alone.

    tests/storage/dataset/read_dataset.py NAME.ooc      prints what it found

Everything that the page says is checked on the way, checksums where the package xxhash is there.
"""

import json
import pathlib
import struct
import sys
from types import SimpleNamespace

import numpy as np

try:
    from xxhash import xxh3_64_intdigest
except ImportError:
    xxh3_64_intdigest = None

DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "<i8", 5: "u1", 6: "<f2", 7: "<u2"}
BF16 = 7
TENSORS = ("features", "labels", "splits", "ids", "degrees", "original_ids", "original_id_ends",
           "original_id_bytes")  # fmt: skip


def require(holds, what):
    if not holds:
        raise ValueError(what)


def require_checksum(data, checksum, what):
    require(xxh3_64_intdigest is None or xxh3_64_intdigest(data) == checksum, f"{what}: checksum")


def ceil_div(a, b):
    return -(-a // b)


class ChunkFile:
    def __init__(self, path, info):
        self.name, data = path.name, memoryview(path.read_bytes())
        (magic, version, self.kind, self.dtype, self.edge_parts, self.rows, self.cols,
         self.block_rows, self.slice_width, self.blocks_per_chunk, self.span_rows, chunk_count,
         checksum) = struct.unpack_from("<8s4I8Q", data)  # fmt: skip
        require((magic, version) == (b"OOCCHUNK", 1), f"{self.name}: no chunk file of version 1")
        require_checksum(data[:80], checksum, f"{self.name}: header")
        (index_offset, index_bytes, index_checksum, header_checksum, file_bytes, zero, footer,
         magic) = struct.unpack("<7Q8s", data[-64:])  # fmt: skip
        require((magic, zero) == (b"OOCFOOT1", 0), f"{self.name}: no footer")
        require(header_checksum == checksum, f"{self.name}: another header's footer")
        require_checksum(data[-64:-16], footer, f"{self.name}: footer")
        require(file_bytes == len(data) == info["bytes"], f"{self.name}: length")
        require(index_checksum == int(info["index_checksum"], 16), f"{self.name}: another's")
        index = data[index_offset : index_offset + index_bytes]
        require_checksum(index, index_checksum, f"{self.name}: index")
        require(len(index) == 32 * chunk_count, f"{self.name}: index")
        self.chunks, self.items, used = [], [], [(0, 88)]
        for offset, size, items, checksum in struct.iter_unpack("<4Q", index):
            require(offset % 4096 == 0 and (size == 0) == (offset == 0), f"{self.name}: offset")
            self.chunks.append(data[offset : offset + size])
            self.items.append(items)
            require_checksum(self.chunks[-1], checksum, f"{self.name}: chunk")
            if size:
                used.append((offset, offset + size))
        used = sorted(used) + [(index_offset, len(data))]
        for (_, end), (begin, _) in zip(used, used[1:]):
            require(end <= begin and not any(data[end:begin]), f"{self.name}: gap")

    def tensor(self):
        out = np.zeros((self.rows, self.cols), DTYPES[self.dtype])
        chunk_rows = self.block_rows * self.blocks_per_chunk
        chunks = iter(zip(self.chunks, self.items, strict=True))
        for col in range(0, self.cols, self.slice_width):
            width = min(self.slice_width, self.cols - col)
            stride = width if self.cols < 8 else ceil_div(width, 8) * 8
            for row in range(0, self.rows, chunk_rows):
                count = min(chunk_rows, self.rows - row)
                chunk, items = next(chunks)
                values = np.frombuffer(chunk, out.dtype).reshape(count, stride)
                require(items == count and not values[:, width:].any(), f"{self.name}: padding")
                out[row : row + count, col : col + width] = values[:, :width]
        if self.dtype == BF16:
            return (out.astype("<u4") << 16).view("<f4")
        return out

    def edges(self):
        """Sources and rows of all edges in the file's order, and what belongs to them."""
        parts = {"sources": [], "rows": [], "weights": [], "types": [], "features": []}
        panels = ceil_div(ceil_div(self.rows, self.block_rows), self.blocks_per_chunk)
        for number, (payload, items) in enumerate(zip(self.chunks, self.items, strict=True)):
            span, panel = divmod(number, panels)
            count = struct.unpack_from("<II", payload)[0] if payload else 0
            tiles = [struct.unpack_from("<HHIIIQ", payload, 8 + 24 * i) for i in range(count)]
            require(sum(tile[2] for tile in tiles) == items, f"{self.name}: edges of a chunk")
            for block, encoding, edges, rows, escapes, at in tiles:
                take = Taker(payload, at)
                if encoding == 1:
                    ends, local = take("<u4", rows), take("<u2", rows)
                    sources, local = take("<u2", edges), np.repeat(local, np.diff(ends, prepend=0))
                else:
                    sources, escaped = take("<u2", edges), take("<u2", escapes)
                    local = rows_of_deltas(take("u1", edges), escaped)
                parts["sources"].append(sources + np.int64(span * self.span_rows))
                first_row = (panel * self.blocks_per_chunk + block) * self.block_rows
                parts["rows"].append(local + np.int64(first_row))
                if self.edge_parts & 1:
                    parts["weights"].append(take.aligned("<f4", edges))
                if self.edge_parts & 2:
                    parts["types"].append(take.aligned("<u2", edges))
                if self.slice_width:
                    features = take.aligned("<f4", edges * self.slice_width)
                    parts["features"].append(features.reshape(edges, self.slice_width))
        empty = np.zeros(0, np.int64)
        return SimpleNamespace(**{k: np.concatenate(v) if v else empty for k, v in parts.items()})


class Taker:
    """Takes one array after the other from a payload."""

    def __init__(self, payload, at):
        self.payload, self.at = payload, at

    def __call__(self, dtype, count):
        values = np.frombuffer(self.payload, dtype, count, self.at)
        self.at += values.nbytes
        return values

    def aligned(self, dtype, count):
        self.at = ceil_div(self.at, 8) * 8
        return self(dtype, count)


def rows_of_deltas(deltas, escapes):
    escaped = deltas == 255
    rows = np.cumsum(np.where(escaped, 0, deltas).astype(np.int64))
    corrections = np.concatenate([[0], escapes - rows[escaped]])
    return rows + corrections[np.cumsum(escaped)]


def names_of(tensors, id_bytes):
    """The ids of the rows, where they are strings."""
    data, ends = tensors["original_id_bytes"].tobytes(), tensors["original_id_ends"][:, 0]
    require(ends[-1] == len(data) == id_bytes and (np.diff(ends, prepend=0) > 0).all(), "id ends")
    names = [data[begin:end].decode() for begin, end in zip([0, *ends], ends)]
    order = np.argsort(tensors["ids"][:, 0])
    ascending = [names[row].encode() for row in order]
    require(ascending == sorted(set(ascending)), "ids do not ascend")
    return np.array(names)


def read_dataset(path):
    """manifest, tensors by name, `edges_in` and `edges_out` (its rows are sources of the graph)."""
    path = pathlib.Path(path)
    manifest = json.loads((path / "manifest.json").read_text())
    checksum = manifest.pop("checksum")
    text = json.dumps(manifest, separators=(",", ":"), ensure_ascii=False)
    require_checksum(text.encode(), int(checksum, 16), "manifest")
    files = {name: ChunkFile(path / name, info) for name, info in manifest["files"].items()}
    edges_in = files["edges.in"].edges()
    edges_out = edges_in if manifest["symmetric"] else files["edges.out"].edges()
    tensors = {name: files[name].tensor() for name in TENSORS if name in files}
    if manifest["remapped"] == "strings":
        tensors["original_ids"] = names_of(tensors, manifest["id_bytes"])
    return SimpleNamespace(manifest=manifest, edges_in=edges_in, edges_out=edges_out, **tensors)


if __name__ == "__main__":
    for key, value in vars(read_dataset(sys.argv[1])).items():
        print(key, getattr(value, "shape", value))
