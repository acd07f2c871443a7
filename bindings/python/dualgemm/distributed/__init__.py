"""Several processes, on torch.distributed alone (gloo, NCCL).

Importing this module teaches DTensor the operators glu, linear and their out forms (rules: _sharding.py), so that DTensors go
into dualgemm.glu() and dualgemm.linear() as other tensors do. GatedMLPParallel: a style for parallelize_module().
GatedExpertsParallel: a mixture whose experts are spread over the processes. dispatch() and combine(): the exchange of its rows
alone, in NVFP4 on the wire.

Tested with gloo on CPUs; over NCCL on two, three and four GPUs by scripts/multi_gpu_check (docs/performance/h200_distributed_four.md).
"""

from __future__ import annotations

import torch.distributed

if not torch.distributed.is_available():
    raise ImportError("dualgemm.distributed: this torch was built without torch.distributed")

from ._experts import Handle, combine, dispatch
from ._parallel import GatedMLPParallel
from ._routed import GatedExpertsParallel
from ._sharding import register

register()

__all__ = ["GatedExpertsParallel", "GatedMLPParallel", "Handle", "combine", "dispatch"]
