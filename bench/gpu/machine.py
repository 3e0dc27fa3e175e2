"""What the machine has, and its rates, which are the other stages' bounds."""

import importlib.metadata
import os
import platform

import processes
from processes import check, find_tool, has
from report import describe_machine

QUERY = ("name", "driver_version", "memory.total", "pcie.link.gen.max", "pcie.link.width.max",
         "clocks.max.sm", "clocks.max.memory")
VERSIONS = ("torch", "torch_geometric", "numpy", "nvidia-cusparse")
COPY_BYTES, LINK_BYTES, ROUNDS = 4 << 30, 1 << 30, 5


def run(context, stage):
    stage.put(host={**describe_machine(), "usable_cores": len(os.sched_getaffinity(0)),
                    "libc": " ".join(platform.libc_ver())})
    versions = {}
    for name in VERSIONS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    stage.put(versions=versions)
    smi = find_tool("nvidia-smi")
    if smi is None:
        stage.absent("nvidia-smi is not here")
    else:
        text = check([smi, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"], 20)
        stage.put(gpu=dict(zip(QUERY, map(str.strip, text.splitlines()[0].split(",")))))
    why = processes.why_no_torch()
    if why:
        stage.absent(why)
        return
    measure(stage)
    if not has("torch_geometric"):
        stage.absent("torch_geometric is not here")


def seconds_of(torch, call):
    """The least of some rounds, after one that warms up."""
    taken = []
    for _ in range(ROUNDS + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        taken.append(begin.elapsed_time(end) / 1e3)
    return min(taken[1:])


def measure(stage):
    import torch

    facts = torch.cuda.get_device_properties(0)
    stage.put(device={"name": facts.name, "memory_bytes": facts.total_memory,
                      "multiprocessors": facts.multi_processor_count,
                      "l2_bytes": getattr(facts, "L2_cache_size", None)})
    source = torch.ones(COPY_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    copied = 2 * COPY_BYTES / seconds_of(torch, lambda: target.copy_(source))
    stage.put(rates={"device_copy": copied})
    del source, target
    on_host = [torch.zeros(LINK_BYTES // 4).pin_memory() for _ in range(2)]
    on_gpu = [torch.zeros(LINK_BYTES // 4, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def go_in():
        on_gpu[0].copy_(on_host[0], non_blocking=True)

    def go_out():
        on_host[1].copy_(on_gpu[1], non_blocking=True)

    def both():
        here = torch.cuda.current_stream()
        for stream, call in zip(streams, (go_in, go_out)):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                call()
            here.wait_stream(stream)

    rates = {name: LINK_BYTES / seconds_of(torch, call) for name, call in (
        ("to_device", go_in), ("from_device", go_out), ("each_way_at_once", both))}
    stage.put(rates={"device_copy": copied, **rates})
