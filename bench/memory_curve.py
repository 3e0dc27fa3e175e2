#!/usr/bin/python3
"""How the time of an epoch grows with the graph while the memory stays the same.

    bench/memory_curve.py [--host-memory 512MiB] [--ratios 0.5,0.75,1,1.5,2,3,4,6,8] [--model gcn]
    bench/memory_curve.py --large [--host-memory 2GiB]

Generates planted-class graphs of equal degree whose vertex tensors (all that the plan names)
together are from 0.5 to 8 times --host-memory, and trains on each: within --host-memory, then
without a limit. Prints seconds and bytes an epoch for each graph, and their ratio to the bound: the
larger of what fio takes for as many bytes at the run's mix, and the epoch without a limit.
The curve follows bytes where that ratio stays the same from graph to graph: a step by more than
1.5 times is a cliff, and exit code 1.

--large trains once for three epochs on a graph whose tensors are 16 times --host-memory or more,
inside a cgroup of 1.5 times that. The bound's compute is that of a run without a limit; where
memory doesn't hold that graph, of as large a graph as it holds, scaled up by the vertices.
The default of 2 GiB makes more than 32 GiB of tensors.

Each case goes to bench/results/memory-curve.json at once, and what is there of the same programs is
not measured again (--again does). Needs fio and disk for the largest graph and its scratch: 8 GB,
--large 50 GB. About 15 minutes on two cores, --large about 15 as well; graphs are removed when they
are done.
"""

import shutil
import sys

import training
from training import MIB, parse_size

EPOCHS = training.WARM_UP + 2
CLIFF = 1.5
CGROUP = 1.5
CLASSES = 16
LARGE = 16
MEMORY_SHARE = 0.75  # that a run without a limit may take


def arguments_of(options):
    return ["--model", options.model, "--layers", options.layers, "--hidden", options.hidden,
            "--epochs", EPOCHS]


def counts_of(options, vertices):
    return f"vertices={vertices},edges={2 * options.degree * vertices}," \
           f"features={options.features},classes={CLASSES}"


def vertices_for(options, ratio):
    """How many vertices make the tensors of the plan within --host-memory `ratio` times as large;
    from plans made from counts alone, since a plan may compute again what another one keeps."""
    wanted = ratio * parse_size(options.host_memory)
    vertices = int(wanted / 2048)
    for _ in range(6):
        document = training.plan(options, "--graph", counts_of(options, vertices),
                                 *arguments_of(options), "--host-memory", options.host_memory)
        if document is None:
            sys.exit(f"--host-memory {options.host_memory} is too small for {vertices:,} vertices")
        held = training.plan_figures(document)["vertex_tensor_bytes"]
        if wanted <= held <= 1.02 * wanted:
            break
        vertices = int(vertices * 1.01 * wanted / held)
    return vertices


def vertices_in_memory(options, most):
    """Of so many vertices those that a run without a limit has memory for."""
    part = int(most / options.large_ratio)
    document = training.plan(options, "--graph", counts_of(options, part), *arguments_of(options))
    return min(most, int(MEMORY_SHARE * document["host_memory"] / document["arena_bytes"] * part))


def generate(options, vertices):
    return training.generate(options, "sbm", vertices, options.degree * vertices, options.features,
                             CLASSES)


def settings_of(options):
    names = ("host_memory", "model", "layers", "hidden", "features", "degree")
    return {name: getattr(options, name) for name in names}


def measure(options, dataset, arguments, limit_bytes=None):
    result = training.train(options, dataset, arguments, limit_bytes)
    if result["exit_code"] != 0:
        sys.exit(f"{dataset.name}: exit code {result['exit_code']}: {result['error']}")
    result["disk_seconds"] = 0
    if result["bytes_read"] + result["bytes_written"] > 0:
        result["disk_seconds"] = training.disk_seconds(
            options, result["bytes_read"], result["bytes_written"], result["input_bytes"])
    return result


def measure_once(results, name, settings, run):
    result = results.get(name, settings)
    if result is None:
        result = run()
        results.put(name, settings, result)
    return result


def print_header():
    print("| tensors / memory | vertices | epoch, s | without a limit, s | bytes / fio, s "
          "| GB read | GB written | predicted, s | peak, MiB | to bound |")
    print("|---|" + "---|" * 9, flush=True)


def print_case(label, limited, in_memory_seconds):
    storage = limited["disk_seconds"]
    to_bound = limited["epoch_seconds"] / max(storage, in_memory_seconds)
    print(f"| {label} | {limited['vertices']:,} | {limited['epoch_seconds']:.2f} "
          f"| {in_memory_seconds:.2f} | {storage:.2f} | {limited['bytes_read'] / 1e9:.2f} "
          f"| {limited['bytes_written'] / 1e9:.2f} | {limited['plan_predicted_seconds']:.2f} "
          f"| {limited['peak_host_bytes'] / MIB:.0f} | {to_bound:.2f} |", flush=True)
    return to_bound


def curve(options, results):
    """A graph for each ratio; true where there is no cliff."""
    settings, arguments = settings_of(options), arguments_of(options)
    to_bound = []
    print_header()
    for ratio in map(float, options.ratios.split(",")):
        name = f"{options.model}-{ratio:g}"
        names = (name, f"{name}-unlimited")
        limited, unlimited = (results.get(n, settings) for n in names)
        if limited is None or unlimited is None:
            vertices = limited["vertices"] if limited else vertices_for(options, ratio)
            dataset = generate(options, vertices)
            memory = ["--host-memory", options.host_memory]
            limited, unlimited = (
                measure_once(results, n, settings, lambda: {
                    "vertices": vertices, **measure(options, dataset, [*arguments, *more])})
                for n, more in zip(names, (memory, [])))
            shutil.rmtree(dataset)
        if limited["curve"] != unlimited["curve"]:
            sys.exit(f"{name}: losses differ from those without a limit")
        to_bound.append(print_case(f"{ratio:g}", limited, unlimited["epoch_seconds"]))
    steps = [after / max(before, 1) for before, after in zip(to_bound, to_bound[1:])]
    step = max(steps, default=1.0)
    print(f"\nto bound {min(to_bound):.2f} to {max(to_bound):.2f}; the largest step from a graph "
          f"to the next is {step:.2f} times: {'a cliff' if step > CLIFF else 'no cliff'}")
    return step <= CLIFF


def large(options, results):
    """Three epochs of one large graph; true where it kept what was promised, or the run failed."""
    budget, settings = parse_size(options.host_memory), settings_of(options)
    arguments = arguments_of(options)
    needed = options.large_ratio * budget * 1.5
    free = shutil.disk_usage(options.work).free
    if free < needed:
        sys.exit(f"{needed / 1e9:.0f} GB of disk are needed, {options.work} has {free / 1e9:.0f}; "
                 "give a smaller --host-memory or another --work")
    name = f"{options.model}-large-{options.large_ratio:g}"

    def run(vertices, arguments, limit_bytes=None):
        dataset = generate(options, vertices)
        result = measure(options, dataset, arguments, limit_bytes)
        shutil.rmtree(dataset)
        return {"vertices": vertices, **result}

    limited = measure_once(results, name, settings, lambda: run(
        vertices_for(options, options.large_ratio),
        [*arguments, "--host-memory", options.host_memory], int(CGROUP * budget)))
    compute = measure_once(results, f"{name}-compute", settings, lambda: run(
        vertices_in_memory(options, limited["vertices"]), arguments))
    share = compute["vertices"] / limited["vertices"]
    ratio = limited["vertex_tensor_bytes"] / budget
    print_header()
    print_case(f"{ratio:.1f}", limited, compute["epoch_seconds"] / share)
    print(f"\n{EPOCHS} epochs, {limited['vertex_tensor_bytes'] / 1e9:.1f} GB of vertex tensors "
          f"within {options.host_memory}; without a limit {share:.0%} of the vertices")
    return ratio >= LARGE and limited["peak_host_bytes"] <= budget


def main():
    parser = training.parser_of(__doc__.splitlines()[0])
    parser.add_argument("--host-memory", help="512MiB; with --large 2GiB")
    parser.add_argument("--ratios", default="0.5,0.75,1,1.5,2,3,4,6,8")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--degree", type=int, default=15, help="undirected edges a vertex")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--large-ratio", type=float, default=17,
                        help="tensors / memory; plans from counts alone are not exact")
    options = training.parse(parser)
    options.host_memory = options.host_memory or ("2GiB" if options.large else "512MiB")
    results = training.Results("memory-curve", options)
    training.forget_rates(options)
    good = large(options, results) if options.large else curve(options, results)
    training.finish(options)
    return not good


if __name__ == "__main__":
    sys.exit(main())
