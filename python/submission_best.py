"""CUDA graph: the two products recorded once for a set of addresses, then replayed as one launch.

A graph holds addresses and reads what lies there at every replay: unlike converted scales it cannot grow stale. On a
CPU the library's plan is made once for a shape and run; where there is no library, the two products as they come.
"""
from collections import OrderedDict
from functools import lru_cache

import torch

try:
    from task import input_t, output_t
except ImportError:
    from .task import input_t, output_t
try:
    from by_device import two_products
except ImportError:
    from .by_device import two_products

MOST_GRAPHS = 256  # the oldest goes first; the four benchmark shapes of 50 inputs fit
graphs: OrderedDict[tuple[object, ...], torch.cuda.CUDAGraph] = OrderedDict()


def custom_kernel(data: input_t) -> output_t:
    """The 10-tuple of task.py; returns its c, written."""
    a, c = data[0], data[-1]
    if c.device.type != "cuda":
        return run_plan(data)
    key = (*(tensor.data_ptr() for tensor in data), a.shape, c.shape)
    if key in graphs:
        graphs[key].replay()
        return c
    two_products(data)  # gives the result, and loads what may not be loaded while a graph is recorded
    graphs[key] = torch.cuda.CUDAGraph()
    # One pool for all: a graph leaves nothing in it that another would have to keep, and none runs beside another.
    with torch.cuda.graph(graphs[key], pool=pool()):
        two_products(data)
    if len(graphs) > MOST_GRAPHS:
        graphs.popitem(last=False)
    return c


@lru_cache(maxsize=None)
def pool() -> tuple[int, int]:
    return torch.cuda.graph_pool_handle()


@lru_cache(maxsize=64)
def plan_of(m: int, n: int, k: int, l: int) -> object:
    try:
        import dualgemm
    except ImportError:
        return None
    return dualgemm.plan(m, n, k, l=l, scale_layout="swizzled_128x4")


def run_plan(data: input_t) -> output_t:
    a, c = data[0], data[-1]
    plan = plan_of(c.shape[0], c.shape[1], 2 * a.shape[1], c.shape[2])
    if plan is None:
        return two_products(data)
    from dualgemm import run
    a, gate, up = (codes.permute(2, 0, 1).view(torch.uint8) for codes in data[:3])
    a_scales, gate_scales, up_scales = (x.permute(5, 2, 4, 0, 1, 3).view(torch.uint8) for x in data[6:9])
    run(plan, a=a, gate=gate, up=up, a_scales=a_scales, gate_scales=gate_scales, up_scales=up_scales, d=c.permute(2, 0, 1))
    return c
