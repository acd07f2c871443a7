"""The functions on torch tensors. Importing this registers torch.ops.dualgemm.* (torch >= 2.10).

Every function is forward only, works on the CPU and on CUDA (the current stream, any device index), under
torch.compile(fullgraph=True, dynamic=True), export and CUDA graphs, and raises DualGemmError with argument, observation and
rule, with nothing written. A direct call of torch.ops.dualgemm.* raises RuntimeError with the same text.
"""

from __future__ import annotations

from ._explain import *  # noqa: F403  what each of them has in __all__
from ._products import *  # noqa: F403
from ._quantized import *  # noqa: F403
from .weights import *  # noqa: F403
