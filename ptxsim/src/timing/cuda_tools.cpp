#include "timing/cuda_tools.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace ptxsim::timing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfComplaint = 300;  // characters of what a tool says

Error tool_error(std::string message) { return {ErrorKind::kInput, std::move(message), {}}; }

// Signals that would end the process come when the folder below is gone. A terminal's reach the
// tools, too, and end them.
class EndingSignalsLater {
 public:
  EndingSignalsLater() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&ending, number);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~EndingSignalsLater() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndingSignalsLater(const EndingSignalsLater&) = delete;
  EndingSignalsLater& operator=(const EndingSignalsLater&) = delete;

  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_;
};

// A folder of its own below the system's for temporary files, which goes with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code failed;
    std::string pattern = (fs::temp_directory_path(failed) / "ptxsim-sass-XXXXXX").string();
    if (!failed && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  bool is_there() const { return !path_.empty(); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Its files by their names alone: messages say the same each time.
  std::string without_path(std::string text) const {
    const std::string prefix = path_ + "/";
    for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
      text.erase(at, prefix.size());
    return text;
  }

 private:
  std::string path_;
};

std::vector<std::string> folders_of_tools() {
  std::vector<std::string> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name); value != nullptr && *value != 0)
      folders.push_back(std::string(value) + "/bin");
  const bool is_named = !folders.empty();
  if (const char* value = std::getenv("PATH"))
    for (const char* at = value; at != nullptr;) {
      const char* end = std::strchr(at, ':');
      folders.emplace_back(at, end == nullptr ? std::strlen(at) : static_cast<size_t>(end - at));
      at = end == nullptr ? nullptr : end + 1;
    }
  if (!is_named) folders.emplace_back("/usr/local/cuda/bin");
  return folders;
}

std::string path_of_tool(const std::string& name) {  // empty: there is none
  for (const std::string& folder : folders_of_tools()) {
    if (folder.empty()) continue;
    const std::string path = folder + "/" + name;
    std::error_code none;
    if (access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, none)) return path;
  }
  return {};
}

std::string contents(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string complaint_in(const std::string& file) {
  const std::string text = contents(file);
  const std::string first = text.substr(0, std::min(text.find('\n'), kMostOfComplaint));
  return first.empty() ? first : ": " + first;
}

// Without LD_PRELOAD: `ptxsim exec` puts its stand-in for CUDA under programs, not under these.
std::vector<char*> environment_of_tools() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) kept.push_back(*variable);
  kept.push_back(nullptr);
  return kept;
}

// Runs it with its output in `output`; empty: it succeeded, or its status is not known.
std::string run_tool(const std::vector<std::string>& command, const std::string& output,
                     const EndingSignalsLater& signals) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string errors = output + ".errors";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), kFlags, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &signals.before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, &attributes, argv.data(),
                                 environment_of_tools().data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  const std::string what = fmt::format("{}", fmt::join(command, " "));
  if (failed != 0) return fmt::format("{}: {}", what, std::strerror(failed));
  int state = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &state, 0)) < 0 && errno == EINTR) {
  }
  // A program below `ptxsim exec` may ignore SIGCHLD, or wait for every child: then what the tool
  // has written says whether it succeeded.
  if (ended != child) return {};
  if (WIFSIGNALED(state)) return fmt::format("{}: ended by signal {}", what, WTERMSIG(state));
  if (WEXITSTATUS(state) == 0) return {};
  const std::string complaint = complaint_in(errors);
  return fmt::format("{}: exit status {}{}", what, WEXITSTATUS(state),
                     complaint.empty() ? complaint_in(output) : complaint);
}

}  // namespace

std::string missing_cuda_tool() {
  for (const char* name : {"ptxas", "nvdisasm"})
    if (path_of_tool(name).empty()) return name;
  return {};
}

Result<std::vector<SassSection>> sass_by_tools(const std::string& ptx, const Program& program) {
  if (const std::string missing = missing_cuda_tool(); !missing.empty())
    return tool_error(fmt::format("no {} in {}", missing, kWhereToolsAre));
  const std::string ptxas = path_of_tool("ptxas"), nvdisasm = path_of_tool("nvdisasm");
  const EndingSignalsLater signals;
  const TemporaryFolder folder;
  if (!folder.is_there()) return tool_error("no folder for temporary files");
  const std::string kernel = folder.file("kernel.ptx"), cubin = folder.file("kernel.cubin"),
                    listing = folder.file("listing");
  if (!(std::ofstream(kernel, std::ios::binary) << ptx).flush())
    return tool_error("the folder for temporary files cannot be written to");
  std::string failed = run_tool({ptxas, "-arch=" + program.module->target, "-lineinfo", "--entry",
                                 program.entry->name, "-o", cubin, kernel},
                                listing, signals);
  if (failed.empty()) failed = run_tool({nvdisasm, "-c", "-gp", "-ndf", cubin}, listing, signals);
  if (!failed.empty()) return tool_error(folder.without_path(failed));
  return parse_sass(contents(listing), nvdisasm);
}

}  // namespace ptxsim::timing
