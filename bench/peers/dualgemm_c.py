"""What a benchmark needs of the C interface (include/dualgemm/dualgemm.h, mlp.h), through ctypes. Needs no torch.

Pointers are numbers, as torch.Tensor.data_ptr() gives them; 0 is null. The caller keeps what they point to alive.
"""

import ctypes

E2M1, F16, BF16, F32 = range(4)
CONTIGUOUS = 1
FUSED = 8
CPU, CUDA = 1, 2


class Failed(Exception):
    """What the library reported: 'argument: observed; rule'."""


class Matrix(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int32),
        ("scale_layout", ctypes.c_int32),
        ("ld", ctypes.c_int64),
        ("batch_stride", ctypes.c_int64),
        ("scale_ld", ctypes.c_int64),
        ("scale_batch_stride", ctypes.c_int64),
    ]


class Activation(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("alpha", ctypes.c_float), ("beta", ctypes.c_float), ("limit", ctypes.c_float)]


class Problem(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("l", ctypes.c_int64),
        ("a", Matrix),
        ("gate", Matrix),
        ("up", Matrix),
        ("d", Matrix),
        ("act", Activation),
        ("grouping", ctypes.c_int32),
        ("batch_invariant", ctypes.c_int32),
        ("bias", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("bias_stride", ctypes.c_int64),
        ("up_column", ctypes.c_int64),
        ("combine", ctypes.c_int32),
        ("residual", ctypes.c_int32),
        ("a_rows", ctypes.c_int64),
    ]


class PreparedDescriptor(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_int32),
        ("version", ctypes.c_int32),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("l", ctypes.c_int64),
        ("expert_bytes", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("alignment", ctypes.c_int64),
        ("columns", ctypes.c_int64),
    ]


class PreparedView(ctypes.Structure):
    _fields_ = [("descriptor", PreparedDescriptor), ("memory", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class Buffers(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64),
        ("a", ctypes.c_void_p),
        ("a_scales", ctypes.c_void_p),
        ("a_row_scale", ctypes.c_void_p),
        ("gate", ctypes.c_void_p),
        ("gate_scales", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("up_scales", ctypes.c_void_p),
        ("alpha_gate", ctypes.c_float),
        ("alpha_up", ctypes.c_float),
        ("alpha_gate_per_batch", ctypes.c_void_p),
        ("alpha_up_per_batch", ctypes.c_void_p),
        ("expert_offsets", ctypes.c_void_p),
        ("expert_rows", ctypes.c_void_p),
        ("d", ctypes.c_void_p),
        ("d_scales", ctypes.c_void_p),
        ("d_global_scale", ctypes.c_float),
        ("reserved", ctypes.c_int32),
        ("prepared", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("prepared_view", ctypes.POINTER(PreparedView)),
        ("bias_gate", ctypes.c_void_p),
        ("bias_up", ctypes.c_void_p),
        ("residual", ctypes.c_void_p),
        ("row_experts", ctypes.c_void_p),
        ("a_row_index", ctypes.c_void_p),
    ]


class MlpProblem(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64),
        ("m", ctypes.c_int64),
        ("hidden", ctypes.c_int64),
        ("intermediate", ctypes.c_int64),
        ("l", ctypes.c_int64),
        ("x", Matrix),
        ("gate", Matrix),
        ("up", Matrix),
        ("down", Matrix),
        ("y", Matrix),
        ("act", Activation),
        ("grouping", ctypes.c_int32),
        ("bias", ctypes.c_int32),
        ("residual", ctypes.c_int32),
        ("batch_invariant", ctypes.c_int32),
        ("quantize_x", ctypes.c_int32),
        ("quantize_h", ctypes.c_int32),
        ("x_scaling", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class MlpBuffers(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64),
        ("x", ctypes.c_void_p),
        ("x_global_scale", ctypes.c_void_p),
        ("gate", ctypes.c_void_p),
        ("gate_scales", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("up_scales", ctypes.c_void_p),
        ("down", ctypes.c_void_p),
        ("down_scales", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("alpha_gate_per_batch", ctypes.c_void_p),
        ("alpha_up_per_batch", ctypes.c_void_p),
        ("alpha_down_per_batch", ctypes.c_void_p),
        ("alpha_gate", ctypes.c_float),
        ("alpha_up", ctypes.c_float),
        ("alpha_down", ctypes.c_float),
        ("h_global_scale", ctypes.c_float),
        ("bias_gate", ctypes.c_void_p),
        ("bias_up", ctypes.c_void_p),
        ("bias_down", ctypes.c_void_p),
        ("residual", ctypes.c_void_p),
        ("expert_offsets", ctypes.c_void_p),
        ("expert_rows", ctypes.c_void_p),
        ("row_experts", ctypes.c_void_p),
        ("prepared_gate_up", ctypes.POINTER(PreparedView)),
        ("prepared_down", ctypes.POINTER(PreparedView)),
        ("stream", ctypes.c_void_p),
    ]


class PlanOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint64),
        ("strategy", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("isa", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("prepared", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("config", ctypes.c_char_p),
        ("unaligned", ctypes.c_int32),
        ("trusted_pointers", ctypes.c_int32),
    ]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.dualgemm_last_error_message.restype = ctypes.c_char_p
        self.c.dualgemm_version.restype = ctypes.c_char_p
        self.c.dualgemm_plan_destroy.restype = None
        self.c.dualgemm_mlp_destroy.restype = None
        for product in (self.c.dualgemm_mlp_gate_up, self.c.dualgemm_mlp_down):
            product.restype = ctypes.c_void_p

    def version(self):
        return self.c.dualgemm_version().decode()

    def call(self, function, *arguments):
        if getattr(self.c, function)(*arguments) != 0:
            raise Failed(self.c.dualgemm_last_error_message().decode())

    def new(self, struct, name):
        """With the library's defaults."""
        value = struct()
        self.call(f"dualgemm_{name}_init", ctypes.byref(value), ctypes.c_uint64(ctypes.sizeof(struct)))
        return value

    def problem(self, m, n, k, experts, a_type, d_type):
        """A problem whose rows are in contiguous groups if there are experts, else a dense one."""
        problem = self.new(Problem, "problem")
        problem.m, problem.n, problem.k = m, n, k
        problem.a.type, problem.d.type = a_type, d_type
        if experts is not None:
            problem.l, problem.grouping = experts, CONTIGUOUS
        return problem

    def one_expert(self, view, expert):
        some = PreparedView()
        self.call(
            "dualgemm_prepared_experts", ctypes.byref(view), ctypes.c_int64(expert), ctypes.c_int64(1), ctypes.byref(some)
        )
        return some

    def mlp_problem(self, m, intermediate, hidden, type_, quantize):
        """Dense; X, Y and, unless quantize, H of that type."""
        problem = self.new(MlpProblem, "mlp_problem")
        problem.m, problem.hidden, problem.intermediate = m, hidden, intermediate
        problem.x.type = problem.y.type = type_
        problem.quantize_x = problem.quantize_h = int(quantize)
        return problem

    def options(self, device, prepared):
        options = self.new(PlanOptions, "plan_options")
        options.device, options.prepared, options.trusted_pointers = device, int(prepared), int(device == CUDA)
        return options

    def buffers(self, **values):
        return self.filled(Buffers, "buffers", values)

    def mlp_buffers(self, **values):
        return self.filled(MlpBuffers, "mlp_buffers", values)

    def filled(self, struct, name, values):
        new = self.new(struct, name)
        for field, value in values.items():
            setattr(new, field, value)
        return new


class PlanHandle:
    """A plan that is kept between calls, and the bytes of its workspace."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        size = ctypes.c_int64()
        library.call("dualgemm_plan_workspace_size", handle, ctypes.byref(size))
        self.workspace_bytes = size.value

    def config(self):
        text = ctypes.create_string_buffer(256)
        self.library.call("dualgemm_plan_config", self.handle, text, ctypes.c_size_t(len(text)), None)
        return text.value.decode()

    def prepared_descriptor(self):
        descriptor = PreparedDescriptor()
        self.library.call("dualgemm_plan_prepared_descriptor", self.handle, ctypes.byref(descriptor))
        return descriptor

    def prepare_into(self, buffers, memory, size):
        self.library.call(
            "dualgemm_prepare_into", self.handle, ctypes.byref(buffers), ctypes.c_void_p(memory), ctypes.c_int64(size)
        )

    def run(self, buffers, workspace):
        self.library.call(
            "dualgemm_run",
            self.handle,
            ctypes.byref(buffers),
            ctypes.c_void_p(workspace),
            ctypes.c_int64(self.workspace_bytes),
            None,
        )


class Plan(PlanHandle):
    """Made on the current device; destroyed with this object."""

    def __init__(self, library, problem, device=CUDA, prepared=False, config=""):
        self.handle = ctypes.c_void_p()
        self.destroy = library.c.dualgemm_plan_destroy
        options = library.options(device, prepared)
        options.strategy = FUSED
        options.config = config.encode()
        library.call("dualgemm_plan_create", ctypes.byref(problem), ctypes.byref(options), ctypes.byref(self.handle))
        super().__init__(library, self.handle)

    def __del__(self):
        if self.handle:
            self.destroy(self.handle)


class Mlp:
    """As Plan. gate_up and down: the plans of the two products."""

    def __init__(self, library, problem, device=CUDA, prepared=False):
        self.library, self.handle = library, ctypes.c_void_p()
        options = library.options(device, prepared)
        library.call("dualgemm_mlp_create", ctypes.byref(problem), ctypes.byref(options), ctypes.byref(self.handle))
        self.gate_up = PlanHandle(library, ctypes.c_void_p(library.c.dualgemm_mlp_gate_up(self.handle)))
        self.down = PlanHandle(library, ctypes.c_void_p(library.c.dualgemm_mlp_down(self.handle)))
        size = ctypes.c_int64()
        library.call("dualgemm_mlp_workspace_size", self.handle, ctypes.byref(size))
        self.workspace_bytes = size.value

    def __del__(self):
        if self.handle:
            self.library.c.dualgemm_mlp_destroy(self.handle)

    def weights(self, product, buffers):
        """What the plan of "gate_up" or "down" reads of them."""
        weights = self.library.buffers()
        self.library.call(f"dualgemm_mlp_{product}_weights", self.handle, ctypes.byref(buffers), ctypes.byref(weights))
        return weights

    def run(self, buffers, workspace):
        self.library.call(
            "dualgemm_mlp_run",
            self.handle,
            ctypes.byref(buffers),
            ctypes.c_void_p(workspace),
            ctypes.c_int64(self.workspace_bytes),
        )
