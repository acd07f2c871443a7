// A picture of a schedule: a row for each actor, time to the right, pieces coloured by the stage
// that they belong to.
#pragma once

#include <string>

#include "timing/schedule.hpp"

namespace ptxsim::timing {

std::string timeline_svg(const Work& work, const Timeline& line, const std::string& title);

}  // namespace ptxsim::timing
