"""CUDA graph: the two products recorded once for a set of addresses, then replayed as one launch.

A graph holds addresses and reads what lies there at every replay: unlike converted scales it cannot grow stale.
On a CPU the library's plan is made once for a shape and run; without the library, the two products as they come.
"""

from collections import OrderedDict
from functools import lru_cache, partial

import torch

try:
    from task import input_t, output_t
except ImportError:
    from .task import input_t, output_t
try:
    from by_device import two_products
except ImportError:
    from .by_device import two_products

MOST_GRAPHS = 256  # the oldest goes first; 50 inputs of four shapes fit
graphs: OrderedDict[tuple[object, ...], torch.cuda.CUDAGraph] = OrderedDict()
# One pool of memory for all: a graph leaves nothing in it for later, and none runs beside another.
pool = lru_cache(torch.cuda.graph_pool_handle)


def custom_kernel(data: input_t) -> output_t:
    """The 10-tuple of task.py; returns its c, written."""
    if (c := data[-1]).device.type != "cuda":
        return run_plan(data)
    key = (*(tensor.data_ptr() for tensor in data), data[0].shape, c.shape)
    if key in graphs:
        graphs[key].replay()
        return c
    two_products(data)  # the result; it also loads what may not be loaded while a graph is recorded
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool()):
        two_products(data)
    graphs[key] = graph
    if len(graphs) > MOST_GRAPHS:
        graphs.popitem(last=False)
    return c


@lru_cache(maxsize=64)
def plan_of(m: int, n: int, k: int, l: int) -> partial[None]:
    import dualgemm

    return partial(dualgemm.run, dualgemm.plan(m, n, k, l=l, scale_layout="swizzled_128x4"))


def run_plan(data: input_t) -> output_t:
    try:
        run = plan_of(data[-1].shape[0], data[-1].shape[1], 2 * data[0].shape[1], data[-1].shape[2])
    except ImportError:
        return two_products(data)
    a, gate, up = (x.permute(2, 0, 1).view(torch.uint8) for x in data[:3])  # L first, as it lies: views
    a_scales, gate_scales, up_scales = (x.permute(5, 2, 4, 0, 1, 3).view(torch.uint8) for x in data[6:9])
    run(a=a, a_scales=a_scales, gate=gate, gate_scales=gate_scales, up=up, up_scales=up_scales, d=data[-1].permute(2, 0, 1))
    return data[-1]
