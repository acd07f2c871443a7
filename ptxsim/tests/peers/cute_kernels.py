"""Kernels in CuTe DSL, and the functions that launch them. No postponed annotations here: the DSL evaluates them."""

import cutlass
import cutlass.cute as cute
from cutlass import pipeline, utils
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, make_tiled_tma_atom_A, make_tiled_tma_atom_B, tcgen05, warpgroup
from cutlass.utils import blackwell_helpers, hopper_helpers

TILE = (128, 64, 64)  # of C's rows, C's columns, k
STAGES = 3
STAGE_BYTES = (TILE[0] + TILE[1]) * TILE[2] * 2
THREADS = 128


@cute.kernel
def _add(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, count: cutlass.Constexpr):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    at = block * THREADS + thread
    if at < count:
        z[at] = x[at] + y[at]


@cute.jit
def add(x: cute.Pointer, y: cute.Pointer, z: cute.Pointer, count: cutlass.Constexpr):
    layout = cute.make_layout(count)
    _add(cute.make_tensor(x, layout), cute.make_tensor(y, layout), cute.make_tensor(z, layout), count).launch(
        grid=[(count + THREADS - 1) // THREADS, 1, 1], block=[THREADS, 1, 1]
    )


@cute.kernel
def _sum_rows(x: cute.Tensor, y: cute.Tensor, cols: cutlass.Constexpr):
    """A warp a row: loads of 16 bytes, sums by shuffles."""
    block = cute.arch.block_idx()[0]
    row, lane = block * (THREADS // 32) + cute.arch.warp_idx(), cute.arch.lane_idx()
    mine = cute.zipped_divide(x[row, None], (4,))
    total = cutlass.Float32(0)
    for part in cutlass.range_constexpr(cols // 128):
        values = mine[None, part * 32 + lane].load()
        total += values.reduce(cute.ReductionOp.ADD, cutlass.Float32(0), 0)
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        y[row] = total


@cute.jit
def sum_rows(x: cute.Pointer, y: cute.Pointer, rows: cutlass.Constexpr, cols: cutlass.Constexpr):
    _sum_rows(
        cute.make_tensor(x, cute.make_layout((rows, cols), stride=(cols, 1))), cute.make_tensor(y, cute.make_layout(rows)), cols
    ).launch(grid=[rows * 32 // THREADS, 1, 1], block=[THREADS, 1, 1])


def _operands(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: int, n: int, k: int):
    return (
        cute.make_tensor(a, cute.make_layout((m, k), stride=(k, 1))),
        cute.make_tensor(b, cute.make_layout((n, k), stride=(k, 1))),
        cute.make_tensor(c, cute.make_layout((m, n), stride=(n, 1))),
    )


def _group(threads: int):
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, threads)


@cute.kernel
def _product_wgmma(
    mma: cute.TiledMma,
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    steps: cutlass.Constexpr,
):
    """C = A * B^T of a tile: warp 4 loads, warps 0 ... 3 multiply."""
    thread, (tile_m, tile_n, _) = cute.arch.thread_idx()[0], cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    tiles_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, layout_a.inner)
    tiles_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, layout_b.inner)
    producer, consumer = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=_group(1),
        consumer_group=_group(THREADS // 32),
        tx_count=STAGE_BYTES,
        barrier_storage=barriers,
    ).make_participants()
    one = cute.make_layout(1)
    to_a, from_a = cpasync.tma_partition(
        load_a,
        0,
        one,
        cute.group_modes(tiles_a, 0, 2),
        cute.group_modes(cute.local_tile(a, (TILE[0], TILE[2]), (tile_m, None)), 0, 2),
    )
    to_b, from_b = cpasync.tma_partition(
        load_b,
        0,
        one,
        cute.group_modes(tiles_b, 0, 2),
        cute.group_modes(cute.local_tile(b, (TILE[1], TILE[2]), (tile_n, None)), 0, 2),
    )
    if warp == THREADS // 32:
        for step in cutlass.range(steps, unroll=1):
            stage = producer.acquire_and_advance()
            cute.copy(load_a, from_a[None, step], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
            cute.copy(load_b, from_b[None, step], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()
    else:
        part = mma.get_slice(thread)
        operand_a, operand_b = mma.make_fragment_A(part.partition_A(tiles_a)), mma.make_fragment_B(part.partition_B(tiles_b))
        mine = part.partition_C(cute.local_tile(c, (TILE[0], TILE[1]), (tile_m, tile_n)))
        acc = cute.make_rmem_tensor(mine.shape, cutlass.Float32)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        for _step in cutlass.range(steps, unroll=1):
            stage = consumer.wait_and_advance()
            warpgroup.fence()
            for part_of_k in cutlass.range_constexpr(cute.size(operand_a, mode=[2])):
                at = (None, None, part_of_k, stage.index)
                cute.gemm(mma, acc, operand_a[at], operand_b[at], acc)
                mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            stage.release()
        cute.autovec_copy(acc, mine)


@cute.jit
def product_wgmma(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Constexpr, n: cutlass.Constexpr, k: cutlass.Constexpr
):
    of_a, of_b, of_c = _operands(a, b, c, m, n, k)
    half, rows = cutlass.Float16, utils.LayoutEnum.ROW_MAJOR
    mma = hopper_helpers.make_trivial_tiled_mma(
        half, half, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, (1, 1, 1), (64, TILE[1])
    )
    layout_a, layout_b = (
        hopper_helpers.make_smem_layout_a(rows, TILE, half, STAGES),
        hopper_helpers.make_smem_layout_b(rows, TILE, half, STAGES),
    )
    load = cpasync.CopyBulkTensorTileG2SOp()
    load_a, box_a = cpasync.make_tiled_tma_atom(load, of_a, cute.slice_(layout_a, (None, None, 0)), (TILE[0], TILE[2]))
    load_b, box_b = cpasync.make_tiled_tma_atom(load, of_b, cute.slice_(layout_b, (None, None, 0)), (TILE[1], TILE[2]))
    _product_wgmma(mma, load_a, box_a, load_b, box_b, of_c, layout_a, layout_b, k // TILE[2]).launch(
        grid=[m // TILE[0], n // TILE[1], 1], block=[THREADS + 32, 1, 1]
    )


@cute.kernel
def _product_tcgen05(
    mma: cute.TiledMma,
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
    steps: cutlass.Constexpr,
):
    """C = A * B^T of a tile: warp 5 loads, warp 4 multiplies, warps 0 ... 3 store what lies in tensor memory."""
    thread, (tile_m, tile_n, _) = cute.arch.thread_idx()[0], cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    done = smem.allocate_array(cutlass.Int64, 2)
    tmem_address = smem.allocate_array(cutlass.Int32, 1)
    tiles_a = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, layout_a.inner)
    tiles_b = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, layout_b.inner)
    producer, consumer = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES, producer_group=_group(1), consumer_group=_group(1), tx_count=STAGE_BYTES, barrier_storage=barriers
    ).make_participants()
    acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=_group(1), consumer_group=_group(THREADS), barrier_storage=done
    ).make_participants()
    if warp == 0:
        cute.arch.alloc_tmem(TILE[1], tmem_address)
    cute.arch.sync_threads()
    in_tmem = cute.arch.retrieve_tmem_ptr(cutlass.Float32, 16, tmem_address)
    part, one = mma.get_slice(0), cute.make_layout(1)
    acc = cute.make_tensor(in_tmem, mma.make_fragment_C(mma.partition_shape_C(TILE[:2])).layout)
    of_a = part.partition_A(cute.local_tile(a, (TILE[0], TILE[2]), (tile_m, None)))
    of_b = part.partition_B(cute.local_tile(b, (TILE[1], TILE[2]), (tile_n, None)))
    mine = part.partition_C(cute.local_tile(c, TILE[:2], (tile_m, tile_n)))
    to_a, from_a = cpasync.tma_partition(load_a, 0, one, cute.group_modes(tiles_a, 0, 3), cute.group_modes(of_a, 0, 3))
    to_b, from_b = cpasync.tma_partition(load_b, 0, one, cute.group_modes(tiles_b, 0, 3), cute.group_modes(of_b, 0, 3))
    if warp == 5:
        for step in cutlass.range(steps, unroll=1):
            stage = producer.acquire_and_advance()
            cute.copy(load_a, from_a[None, step], to_a[None, stage.index], tma_bar_ptr=stage.barrier)
            cute.copy(load_b, from_b[None, step], to_b[None, stage.index], tma_bar_ptr=stage.barrier)
        producer.tail()
    if warp == 4:
        operand_a, operand_b = mma.make_fragment_A(tiles_a), mma.make_fragment_B(tiles_b)
        result = acc_producer.acquire_and_advance()
        mma.set(tcgen05.Field.ACCUMULATE, False)
        for _step in cutlass.range(steps, unroll=1):
            stage = consumer.wait_and_advance()
            for part_of_k in cutlass.range_constexpr(cute.size(operand_a, mode=[2])):
                at = (None, None, part_of_k, stage.index)
                cute.gemm(mma, acc, operand_a[at], operand_b[at], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            stage.release()
        result.commit()
        acc_producer.tail()
    if warp < 4:
        load = tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32), acc[(None, None), 0, 0]
        ).get_slice(thread)
        from_tmem, to = load.partition_S(acc[(None, None), 0, 0]), load.partition_D(mine[(None, None), 0, 0])
        result = acc_consumer.wait_and_advance()
        values = cute.make_rmem_tensor(to.shape, cutlass.Float32)
        cute.copy(load, from_tmem, values)
        cute.arch.fence_view_async_tmem_load()
        result.release()
        cute.autovec_copy(values, to)
    cute.arch.sync_threads()
    if warp == 0:
        cute.arch.relinquish_tmem_alloc_permit()
        cute.arch.dealloc_tmem(in_tmem, TILE[1])


@cute.jit
def product_tcgen05(
    a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Constexpr, n: cutlass.Constexpr, k: cutlass.Constexpr
):
    of_a, of_b, of_c = _operands(a, b, c, m, n, k)
    half = cutlass.Float16
    mma = blackwell_helpers.make_trivial_tiled_mma(
        half, half, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, tcgen05.CtaGroup.ONE, TILE[:2]
    )
    layout_a, layout_b = (
        blackwell_helpers.make_smem_layout_a(mma, TILE, half, STAGES),
        blackwell_helpers.make_smem_layout_b(mma, TILE, half, STAGES),
    )
    load = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    load_a, box_a = make_tiled_tma_atom_A(load, of_a, cute.slice_(layout_a, (None, None, None, 0)), TILE, mma)
    load_b, box_b = make_tiled_tma_atom_B(load, of_b, cute.slice_(layout_b, (None, None, None, 0)), TILE, mma)
    _product_tcgen05(mma, load_a, box_a, load_b, box_b, of_c, layout_a, layout_b, k // TILE[2]).launch(
        grid=[m // TILE[0], n // TILE[1], 1], block=[THREADS + 64, 1, 1]
    )
