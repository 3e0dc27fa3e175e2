"""Graphs, made on the CPU: for sums as two files of a CSR matrix, for training as a dataset and its
arrays."""

import time

from processes import check, has
from shapes import GATHERS

# What making the dataset may take, and the share that is made first to tell.
SECONDS, TRIED = 120, 1 / 64
SCALES = (1, 1 / 2, 1 / 4, 1 / 8, 1 / 16)


def run(context, stage):
    graphs = {}
    for name, numbers in context.gathers.items():
        vertices, edges, hub, _, seed = numbers
        directory = context.work / name
        directory.mkdir(exist_ok=True)
        begin = time.monotonic()
        check([context.tests["gpu_gather_bench"], "make", directory, vertices, edges, hub, seed],
              stage.left())
        graphs[name] = {"directory": directory, "seconds": time.monotonic() - begin}
        stage.put(graphs=graphs)
    scale = context.scale
    if scale > TRIED:
        seconds = make(context, stage, "tried", TRIED)["seconds"]
        within = [s for s in SCALES if s <= scale and seconds * s / TRIED <= SECONDS]
        scale = within[0] if within else SCALES[-1]
    stage.put(dataset=make(context, stage, "train", scale))


def make(context, stage, name, scale):
    """Of Reddit's counts, or fewer: R-MAT, whose degrees are skewed; edges are undirected."""
    shape = GATHERS["reddit"].scaled(scale)
    dataset, arrays = context.work / f"{name}.ooc", context.work / f"{name}.arrays"
    begin = time.monotonic()
    prep = context.programs / "ooc-prep"
    check([prep, "generate", "rmat", "--vertices", shape.vertices, "--edges", shape.edges // 2,
           "--features", context.features, "--classes", context.classes, "-o", dataset, "--quiet",
           "--force"], stage.left())
    if has("torch") and has("torch_geometric"):
        check([prep, "export", dataset, "-o", arrays, "--quiet", "--force"], stage.left())
    return {"path": dataset, "arrays": arrays, "vertices": shape.vertices,
            "edges": shape.edges // 2 * 2, "features": context.features, "scale": scale,
            "seconds": time.monotonic() - begin}
