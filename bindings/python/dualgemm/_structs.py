"""The structs of dualgemm.h that are passed through ctypes; the library checks their sizes."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_char_p, c_float, c_int32, c_int64, c_uint64, c_void_p


class Matrix(ctypes.Structure):
    _fields_ = [
        ("type", c_int32),
        ("scale_layout", c_int32),
        ("ld", c_int64),
        ("batch_stride", c_int64),
        ("scale_ld", c_int64),
        ("scale_batch_stride", c_int64),
    ]


class Activation(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("alpha", c_float), ("beta", c_float), ("limit", c_float)]


class Problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("m", c_int64),
        ("n", c_int64),
        ("k", c_int64),
        ("l", c_int64),
        ("a", Matrix),
        ("gate", Matrix),
        ("up", Matrix),
        ("d", Matrix),
        ("act", Activation),
        ("grouping", c_int32),
        ("batch_invariant", c_int32),
        ("bias", c_int32),
        ("reserved", c_int32),
        ("bias_stride", c_int64),
        ("up_column", c_int64),
        ("combine", c_int32),
        ("residual", c_int32),
        ("a_rows", c_int64),
    ]


class Buffers(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("a", c_void_p),
        ("a_scales", c_void_p),
        ("a_row_scale", c_void_p),
        ("gate", c_void_p),
        ("gate_scales", c_void_p),
        ("up", c_void_p),
        ("up_scales", c_void_p),
        ("alpha_gate", c_float),
        ("alpha_up", c_float),
        ("alpha_gate_per_batch", c_void_p),
        ("alpha_up_per_batch", c_void_p),
        ("expert_offsets", c_void_p),
        ("expert_rows", c_void_p),
        ("d", c_void_p),
        ("d_scales", c_void_p),
        ("d_global_scale", c_float),
        ("reserved", c_int32),
        ("prepared", c_void_p),
        ("stream", c_void_p),
        ("prepared_view", c_void_p),
        ("bias_gate", c_void_p),
        ("bias_up", c_void_p),
        ("residual", c_void_p),
        ("row_experts", c_void_p),
        ("a_row_index", c_void_p),
    ]


class PlanOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("strategy", c_int32),
        ("device", c_int32),
        ("isa", c_int32),
        ("threads", c_int32),
        ("prepared", c_int32),
        ("reserved", c_int32),
        ("config", c_char_p),
        ("unaligned", c_int32),
        ("trusted_pointers", c_int32),
    ]


class PlanInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("strategy", c_int32),
        ("device", c_int32),
        ("isa", c_int32),
        ("regime", c_int32),
        ("threads", c_int32),
        ("prepared", c_int32),
        ("tile_m", c_int64),
        ("tile_n", c_int64),
        ("tile_k", c_int64),
        ("workspace_bytes", c_int64),
        ("prepared_bytes", c_int64),
        ("stages", c_int64),
        ("k_warpgroups", c_int64),
        ("ctas", c_int64),
        ("preparation", c_int32),
        ("reserved", c_int32),
        ("kernel", c_char * 24),
    ]


class OperandBytes(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64)] + [
        (name, c_int64)
        for name in (
            "a",
            "a_scales",
            "gate",
            "gate_scales",
            "up",
            "up_scales",
            "d",
            "d_scales",
            "a_row_scale",
            "bias_gate",
            "bias_up",
        )
    ]


class DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("kind", c_int32),
        ("cores", c_int32),
        ("l1d_bytes", c_int64),
        ("l2_bytes", c_int64),
        ("l3_bytes", c_int64),
        ("num_isas", c_int32),
        ("isas", c_int32 * 15),
        ("name", c_char * 128),
    ]


# The structs of checkpoint.h.
class LayerInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("n", c_int64),
        ("k", c_int64),
        ("gate_global_scale", c_float),
        ("up_global_scale", c_float),
        ("input_scale", c_float),
        ("scale_layout", c_int32),
        ("pre_quant_scale", c_void_p),
        ("hadamard", c_int64),
    ]


class LinearInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("n", c_int64),
        ("k", c_int64),
        ("experts", c_int64),
        ("bytes", c_int64),
        ("block_rows", c_int64),
        ("block_cols", c_int64),
        ("module", c_char_p),
        ("format", c_char_p),
        ("granularity", c_char_p),
        ("activations", c_char_p),
        ("description", c_char_p),
        ("contradiction", c_char_p),
        ("hadamard", c_int64),
    ]


class MatrixInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("n", c_int64),
        ("k", c_int64),
        ("data", c_void_p),
        ("scales", c_void_p),
        ("bias", c_void_p),
        ("global_scale", c_float),
        ("input_scale", c_float),
        ("type", c_int32),
        ("scale_layout", c_int32),
        ("pre_quant_scale", c_void_p),
        ("hadamard", c_int64),
    ]
