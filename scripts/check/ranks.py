"""Processes of torch.distributed on this machine, for scripts: one function in each of them."""

import datetime
import os
import socket
import traceback
from queue import Empty


START_S = 60  # of a process on a busy machine: it imports torch before it meets the others


def _serve(rank, processes, backend, port, seconds, queue, function, arguments):
    import torch
    import torch.distributed as dist

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ["WORLD_SIZE"] = str(processes)
    try:
        device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
        if backend == "nccl":
            torch.cuda.set_device(device)
        else:
            torch.set_num_threads(1)
        dist.init_process_group(backend, timeout=datetime.timedelta(seconds=seconds))
        result = function(rank, device, *arguments)
        dist.destroy_process_group()
        queue.put((rank, result, None))
    except Exception:  # the other processes end by their time-out
        queue.put((rank, None, traceback.format_exc()))


def run(function, arguments, processes, backend, seconds):
    """function(rank, device, *arguments) in each; their results by rank, each with the traceback of what it raised or None.
    seconds: of waiting for each other. One that still waits so long after another has failed is ended: a kernel that reads what the
    other does not write knows no time-out."""
    import torch.multiprocessing as mp

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.Queue()
    common = (processes, backend, port, seconds, queue, function, arguments)
    workers = [context.Process(target=_serve, args=(rank, *common)) for rank in range(processes)]
    for worker in workers:
        worker.start()
    answers = {}
    while len(answers) < processes:
        failed = any(error for _, error in answers.values())
        try:
            rank, *answer = queue.get(timeout=seconds + 10 if failed else seconds * 5 + START_S)
        except Empty:
            break
        answers[rank] = answer
    for rank, worker in enumerate(workers):
        worker.join(30 if rank in answers else 0)
        if worker.is_alive():
            worker.kill()
    waited = None, f"ended after {seconds} s of waiting for the others"
    return [tuple(answers.get(rank, waited)) for rank in range(processes)]
