"""vllm#49070: NVFP4 experts as MiniMax-M3's on Hopper, SwiGLU-OAI with a limit, eight calls at a time: illegal access, wrong values."""

from concurrent.futures import ThreadPoolExecutor

import torch
from situations import DEVICE, K, ROW, experts, is_close, swiglu_oai


def test_eight_calls_at_a_time() -> None:
    module, exact = experts(6, activation="swiglu_oai", act_alpha=1.702, act_limit=1.5)

    def call(seed: int) -> bool:
        noise = torch.Generator("cpu").manual_seed(seed)
        x = (torch.randn(9 + seed, K, generator=noise, device="cpu") * 4).to(ROW)
        ids = torch.randint(0, 6, (x.shape[0], 2), generator=noise, device="cpu")
        weights = torch.rand(ids.shape, generator=noise, device="cpu")
        found = module(x.to(DEVICE), ids.to(DEVICE), weights.to(DEVICE))
        wanted = torch.zeros(x.shape, dtype=torch.float64, device="cpu")
        for row in range(x.shape[0]):
            for expert, weight in zip(ids[row].tolist(), weights[row].tolist()):
                gate, up, down = exact[expert]
                h = swiglu_oai(x[row].double() @ gate.T, x[row].double() @ up.T, 1.702, 1.5)
                wanted[row] += weight * (h @ down.T)
        return is_close(found, wanted)

    with torch.no_grad(), ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(32)))
