// `ptxsim speed`: how quickly this machine interprets.
#pragma once

namespace ptxsim::cli {

// Prints warp instructions a second (loops with all lanes and with one; tiles in shared memory and
// whole SGEMMs, with the sanitizer and without), and milliseconds for the NVFP4 multiplication of
// one 128x128x512 tile (exact; rounded). Medians of several runs, by the time of the processor.
int speed_command();

}  // namespace ptxsim::cli
