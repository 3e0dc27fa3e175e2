"""The graphs that are measured, and smaller ones like them."""

import math
import typing


class Shape(typing.NamedTuple):
    """Edges are directed. `hub`: the most in-edges that a vertex of the real graph has."""

    vertices: int
    edges: int
    hub: int
    columns: tuple  # of what is summed
    seed: int = 1

    def scaled(self, scale):
        """Vertices, and edges a vertex, shrink by the square root each."""
        root = math.sqrt(scale)
        vertices = max(64, round(self.vertices * root))
        edges = max(vertices, round(self.edges / self.vertices * root * vertices))
        return self._replace(vertices=vertices, edges=edges,
                             hub=max(round(self.hub * root), 2 * edges // vertices + 1))


GATHERS = {
    "reddit": Shape(232_965, 114_615_892, 21_657, (602, 128)),
    "products": Shape(2_449_029, 123_718_280, 17_481, (100,)),
}
# What is trained on: Reddit's counts, as ooc-prep draws them.
FEATURES, CLASSES, HIDDEN = 602, 41, 128


def settings(scale, dry):
    """The sizes of a run; dry: also narrower, and shorter."""
    gathers = {name: shape.scaled(scale) for name, shape in GATHERS.items()}
    if not dry:
        return {"gathers": gathers, "features": FEATURES, "classes": CLASSES, "hidden": HIDDEN,
                "turns": 5, "turn_seconds": 0.3, "epochs": 12}
    gathers = {name: shape._replace(columns=tuple(max(5, columns // 16)
                                                  for columns in shape.columns[:1]))
               for name, shape in gathers.items()}
    return {"gathers": gathers, "features": 32, "classes": 5, "hidden": 16,
            "turns": 1, "turn_seconds": 0.01, "epochs": 2}
