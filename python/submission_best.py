"""CUDA graph: the two products recorded once for a set of addresses, then replayed as one launch.

A graph holds addresses and reads what lies there at every replay: unlike converted scales it cannot grow stale. On a
CPU the library's plan is made once for a shape and run; without the library the products are computed as they come.
"""
from collections import OrderedDict
from functools import lru_cache
from importlib.util import find_spec

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
