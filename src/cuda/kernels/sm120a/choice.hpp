// Which of the compiled kernels a problem gets, and how long it should take: a model of the
// machine, to rank kernels and to tell a person what to expect before there is a measurement.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm120a/instances.hpp"
#include "cuda/kernels/sm120a/tiles.hpp"
#include "cuda/machine/gpu.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda::sm120a {

// The rates of the GPU, or of its nearest relative of those that are described, with its own SMs.
const machine::Gpu& machine_of(const DeviceCaps& caps);

// Microseconds of a launch with weights in memory and `rows` rows of A a batch or expert.
double modelled_us(const Problem& problem, const Config& config, const DeviceCaps& caps);

// What no launch is below: the data sheet's rates for the weights that are read, and the products.
double least_us(const Problem& problem, const DeviceCaps& caps);

// The compiled instance that should take the least time.
const Instance& choose_instance(const Problem& problem, const DeviceCaps& caps);

// CTAs that take the tiles in turn, at most `most`, where an SM has one at a time; 0: a CTA for
// each tile.
int64_t ctas_for(const Problem& problem, const Config& config, int64_t most);

// Stages of the ring: as many as fit with the CTAs that an SM gets.
int stages_for(const Problem& problem, const Config& config, const DeviceCaps& caps);
int most_stages(const Config& config, int ctas);  // with so many CTAs an SM

}  // namespace dualgemm::cuda::sm120a
