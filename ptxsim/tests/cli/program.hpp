// Drives the binary `ptxsim` as a user does: files and arguments in, exit code, stdout and stderr
// out.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "contains.hpp"

namespace ptxsim_test {

struct Outcome {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
};

inline std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  return stream << "exit code " << outcome.exit_code << "\nstdout:\n"
                << outcome.out << "\nstderr:\n"
                << outcome.err;
}

// Doubles each of 32 values.
inline const std::string kKernel = R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.u32 %r3, %r2, %r2;
  add.u64 %rd5, %rd2, %rd3;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";
inline const std::string kCase = R"({"entry": "twice", "block": [32],
 "buffers": [{"name": "in", "type": "u32", "count": 32, "iota": true},
             {"name": "out", "type": "u32", "count": 32, "expect": [0, 2, 4, 6]}],
 "params": [{"buffer": "in"}, {"buffer": "out"}]})";

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::invalid_argument("'" + from + "' is not in the text");
  return text.replace(at, from.size(), to);
}

// A text that is refused, made of kKernel or kCase.
struct BadText {
  const char* name;
  const char* from;  // of the right text
  const char* to;
  const char* position;
  const char* reason;
};
inline void PrintTo(const BadText& bad, std::ostream* out) { *out << bad.name; }

// A directory of its own for each test, which is where the program runs; removed behind it.
class Program : public testing::Test {
 protected:
  Program() {
    std::string name = (std::filesystem::temp_directory_path() / "ptxsim-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = name;
    std::filesystem::create_directory(root_ / "work");
    write("k.ptx", kKernel);
    write("c.json", kCase);
  }
  ~Program() override { std::filesystem::remove_all(root_); }

  std::filesystem::path path(const std::string& name) const { return root_ / "work" / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) const { return text_of(path(name)); }

  // `interrupt_when`: a file; when the program has made it, it gets the signal.
  Outcome start(const std::vector<std::string>& arguments, const std::string& interrupt_when = "",
                int signal = SIGINT) const {
    std::string binary = PTXSIM_BINARY;
    std::vector<char*> argv{binary.data()};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    const std::string out = (root_ / "stdout").string(), err = (root_ / "stderr").string();
    posix_spawn_file_actions_addchdir_np(&actions, path("").c_str());
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    const int failed = posix_spawn(&child, binary.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(failed, 0) << "cannot start " << binary;
    Outcome outcome;
    int state = 0;
    if (failed == 0 && !interrupt_when.empty()) {
      const auto is_over = [&] {
        siginfo_t info{};
        return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == child;
      };
      while (!std::filesystem::exists(path(interrupt_when)) && !is_over()) usleep(1000);
      kill(child, signal);
    }
    if (failed == 0 && waitpid(child, &state, 0) == child && WIFEXITED(state))
      outcome.exit_code = WEXITSTATUS(state);
    outcome.out = text_of(out);
    outcome.err = text_of(err);
    return outcome;
  }

  // `ptxsim run k.ptx --case c.json` and more.
  Outcome run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"run", "k.ptx", "--case", "c.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments);
  }

  // Exit code 2, nothing on stdout, and one line on stderr that begins with the position and has
  // the reason.
  static void expect_refused(const Outcome& outcome, const std::string& position,
                             const std::string& reason) {
    EXPECT_EQ(outcome.exit_code, 2) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome;
    const std::string begin = position.empty() ? "error: " : position + ": error: ";
    EXPECT_TRUE(outcome.err.starts_with(begin) ||
                (!position.empty() && outcome.err.starts_with(position + " (")))
        << "'" << begin << "' does not begin " << outcome;
    EXPECT_TRUE(contains(outcome.err, reason));
  }

 private:
  static std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::filesystem::path root_;
};

}  // namespace ptxsim_test
