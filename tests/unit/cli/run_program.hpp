// Drives the binary `dualgemm` as a user does: arguments in, exit code, stdout and stderr out.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace dualgemm::test {

struct ProgramResult {
  int exit_code = -1;  // -1: ended by a signal
  std::string out, err;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::ostream& operator<<(std::ostream& stream, const ProgramResult& result) {
  return stream << "exit code " << result.exit_code << "\nstdout:\n"
                << result.out << "\nstderr:\n"
                << result.err;
}

// A directory of its own for each test, removed behind it.
class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    std::string name = (std::filesystem::temp_directory_path() / "dualgemm-cli-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = name;
    std::filesystem::create_directory(root_ / "work");
  }
  ~CliTest() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / "work" / name).string(); }

  // Names in the working directory, sorted: what a command has left behind.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root_ / "work")) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void write_text(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  // `environment`: NAME=value, added to the test's own.
  ProgramResult run(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {},
                    const std::string& stdout_path = "") const {
    const std::string out = stdout_path.empty() ? (root_ / "stdout").string() : stdout_path;
    return finish(start(arguments, environment, out), stdout_path.empty());
  }

  // With a shell's redirections behind it, such as "2>&-": its exit status, or -1 for a signal.
  int run_redirected(const std::vector<std::string>& arguments,
                     const std::string& redirections) const {
    std::string command = "exec '" + binary() + "'";
    for (const std::string& argument : arguments) command += " '" + argument + "'";
    command += " " + redirections;
    std::string shell = "/bin/sh", option = "-c";
    char* argv[] = {shell.data(), option.data(), command.data(), nullptr};
    pid_t child = 0;
    int state = 0;
    EXPECT_EQ(posix_spawn(&child, shell.c_str(), nullptr, nullptr, argv, environ), 0);
    if (waitpid(child, &state, 0) != child) return -1;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

  // Ctrl-C after so many milliseconds.
  ProgramResult interrupt(const std::vector<std::string>& arguments, int milliseconds) const {
    const pid_t child = start(arguments, {}, (root_ / "stdout").string());
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    if (child > 0) kill(child, SIGINT);
    return finish(child, true);
  }

  // A small layer and activations; N 48, K 64, M 5.
  void make_layer() const {
    const ProgramResult made =
        run({"make-layer", "--out", path("layer.safetensors"), "--activations", path("x.npy"),
             "--m", "5", "--n", "48", "--k", "64", "--type", "bf16", "--seed", "3"});
    ASSERT_EQ(made.exit_code, 0) << made;
  }
  void quantize(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"quantize", path("layer.safetensors"), "--out",
                                          path("q.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult quantized = run(arguments);
    ASSERT_EQ(quantized.exit_code, 0) << quantized;
  }

 private:
  static std::string binary() {
    const char* override_path = std::getenv("DUALGEMM_BINARY");
    return override_path != nullptr ? override_path : DUALGEMM_BINARY_PATH;
  }

  // 0 when it cannot be started.
  pid_t start(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment, const std::string& out) const {
    std::string program = binary();
    std::vector<char*> argv{program.data()};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (std::string(*entry).rfind("DUALGEMM_FORCE_ISA=", 0) != 0) envp.push_back(*entry);
    }
    envp.push_back(nullptr);

    const std::string err = (root_ / "stderr").string();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    const int failed =
        posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(failed, 0) << "cannot start " << program;
    return failed == 0 ? child : 0;
  }

  ProgramResult finish(pid_t child, bool read_stdout) const {
    ProgramResult result;
    int state = 0;
    if (child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state))
      result.exit_code = WEXITSTATUS(state);
    if (read_stdout) result.out = read_text(root_ / "stdout");
    result.err = read_text(root_ / "stderr");
    return result;
  }

  std::filesystem::path root_;
};

inline ::testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

}  // namespace dualgemm::test
