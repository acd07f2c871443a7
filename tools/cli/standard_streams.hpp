// stdin, stdout and stderr as a shell leaves them to a program: each may be closed or full.
#pragma once

#include <string_view>

namespace dualgemm::cli {

// Gives a closed one of them something in its place, so that no file that the program opens gets
// its number and with it all that is printed. Writing to such a stdout still fails
// (flush_stdout()), as it does where a shell closes it for any other program.
void open_standard_streams() noexcept;

// What stderr does not take is lost: there is nowhere to say so, and the job goes on.
void print_to_stderr(std::string_view text) noexcept;

}  // namespace dualgemm::cli
