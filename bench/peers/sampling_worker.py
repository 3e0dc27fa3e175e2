"""Sampled training by one peer, in the peers' virtual environment; sampling_accuracy.py and
sampling_peers.py start it.

    sampling_worker.py speed dgl ARRAYS ...      trains on so many batches for each line of standard
                                                 input that says how many
    sampling_worker.py accuracy pyg ARRAYS ...   trains, and scores on all edges after every epoch

Answers are lines of JSON, as worker.py's.
"""

import argparse
import os
import pathlib
import sys
import time

import worker

WARM_UP = 3  # batches


def serve(options, arrays):
    import sampled

    training = sampled.Training(options.peer, arrays, options)
    built = worker.peak_bytes()
    worker.forget_peak()
    begin = time.perf_counter()
    training.epoch(WARM_UP)
    worker.answer(built_peak_bytes=built, peak_bytes=worker.peak_bytes(),
                  first_seconds=time.perf_counter() - begin, versions=training.peer.versions)
    for line in sys.stdin:
        begin = time.perf_counter()
        vertices = training.epoch(int(line))
        worker.answer(seconds=time.perf_counter() - begin, peak_bytes=worker.peak_bytes(),
                      vertices=vertices)


def score(options, arrays):
    """The test score at the epoch with the best valid one; the first of several."""
    import sampled
    import torch

    degrees, x = arrays["indptr"].diff(), arrays["features"]
    shares = torch.repeat_interleave(1 / degrees.clamp(min=1).float(), degrees)
    means = torch.sparse_csr_tensor(arrays["indptr"], arrays["indices"], shares,
                                    (arrays["vertices"],) * 2)
    first = means @ x
    torch.manual_seed(options.seed)
    training = sampled.Training(options.peer, arrays, options)
    scores = []
    for epoch in range(1, options.epochs + 1):
        training.epoch()
        if epoch % options.eval_every and epoch < options.epochs:
            continue
        training.net.eval()
        right = training.net.on_all_edges(means, x, first).argmax(1) == arrays["labels"]
        scores.append([right[arrays[split]].float().mean().item() for split in ("valid", "test")])
    valid, test = max(scores, key=lambda pair: pair[0])
    worker.answer(best_valid=valid, test=test, last_test=scores[-1][1],
                  versions=training.peer.versions)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "accuracy"])
    parser.add_argument("peer", choices=["dgl", "pyg"])
    parser.add_argument("arrays", type=pathlib.Path)
    parser.add_argument("--fanouts", type=lambda text: [int(f) for f in text.split(",")])
    parser.add_argument("--kind", help="what edges are given as")
    for name in ("layers", "batch-size", "hidden"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name, value in {"threads": 1, "workers": 0, "epochs": 1, "eval-every": 1,
                        "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in {"lr": 0.01, "dropout": 0.5, "input-dropout": 0, "weight-decay": 0}.items():
        parser.add_argument(f"--{name}", type=float, default=value)
    return parser.parse_args()


def main():
    options = parse()
    import sampled
    import torch

    torch.set_num_threads(options.threads)
    arrays = sampled.load_arrays(options.arrays)
    serve(options, arrays) if options.what == "speed" else score(options, arrays)


if __name__ == "__main__":
    # What libraries print is not an answer.
    worker.ANSWERS = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        main()
    except Exception as error:
        worker.answer(error=f"{type(error).__name__}: {error}".strip().splitlines()[0][:300])
        sys.exit(1)
