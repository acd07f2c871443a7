// A stored H of 16 bits transformed (RowTransform), and then quantised with a scale for each row.
#pragma once

#include "dualgemm/quantize.hpp"
#include "tools/verify/stored_h.hpp"

namespace dualgemm::verify {

// factors: [h.cols], or null. type: of what is stored, before and after.
void transform_h(const RowTransform& transform, const float* factors, DataType type, StoredH& h);
// Precondition: 16-bit values.
void quantize_rows_of_h(StoredH& h);

}  // namespace dualgemm::verify
