// Prepared weights as bytes: the header of each expert's part, and what must hold of a view. The
// only place that knows the header; docs/formats.md, "Prepared weights", has its picture.
#pragma once

#include <cstdint>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::plan {

// `part_bytes`: of one expert's weights, without the header.
PreparedDescriptor describe_prepared(PreparedFormat format, const Problem& problem,
                                     int64_t part_bytes) noexcept;

DeviceKind device_of(PreparedFormat format) noexcept;  // kNone: kAuto

// A part's first kPreparedHeaderBytes, the same for all parts.
void write_header(const PreparedDescriptor& descriptor, uint8_t* header) noexcept;

// Writes the header of every part, and zeros behind its `part_bytes` of weights.
void frame_parts(const PreparedDescriptor& descriptor, int64_t part_bytes,
                 uint8_t* memory) noexcept;

// From the handle, else the caller's own view; null: no prepared weights are given.
const PreparedView* view_of(const Buffers& buffers) noexcept;

// What `wanted` asks of the memory that prepare() fills: enough of it, well aligned.
Status check_memory_for(const PreparedDescriptor& wanted, const void* memory, int64_t bytes);

// Whether the view is one of prepared weights at all: its numbers agree with each other, and the
// memory is large enough and well aligned. Its content is not looked at.
Status check_view(const PreparedView& view);

// Whether run() may take it where `wanted` is needed.
Status check_view_fits(const PreparedDescriptor& wanted, const PreparedView& view);

// The public functions read_prepared_header() and prepared_experts().
Expected<PreparedDescriptor> read_header(const void* header, int64_t bytes);
Expected<PreparedView> some_experts(const PreparedView& view, int64_t first, int64_t count);

// Whether every part in memory of the host has the header of the view's descriptor. Precondition:
// check_view().
Status check_headers(const PreparedView& view);

}  // namespace dualgemm::plan
