// `ptxsim speed`: how quickly this machine interprets.
#pragma once

namespace ptxsim::cli {

// Prints warp instructions a second (all lanes; one lane) and milliseconds for the NVFP4
// multiplication of one 128x128x512 tile (exact; rounded). Medians of several runs on one core.
int speed_command();

}  // namespace ptxsim::cli
