#include "cli/sass_of_kernel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/loaded.hpp"

namespace ptxsim::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOfComplaint = 300;  // characters of what a tool says

Error refusal(std::string message) { return {ErrorKind::kInput, std::move(message), {}}; }

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

  const std::string& path() const { return path_; }  // empty: there is none

 private:
  std::string path_;
};

std::vector<std::string> folders_of_tools() {
  std::vector<std::string> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name)) folders.push_back(std::string(value) + "/bin");
  if (const char* value = std::getenv("PATH"))
    for (const char* at = value; at != nullptr;) {
      const char* end = std::strchr(at, ':');
      folders.emplace_back(at, end == nullptr ? std::strlen(at) : static_cast<size_t>(end - at));
      at = end == nullptr ? nullptr : end + 1;
    }
  folders.emplace_back("/usr/local/cuda/bin");
  return folders;
}

Result<std::string> tool(const std::string& name) {
  for (const std::string& folder : folders_of_tools()) {
    if (folder.empty()) continue;
    const std::string path = folder + "/" + name;
    if (access(path.c_str(), X_OK) == 0 && !fs::is_directory(path)) return path;
  }
  return refusal(fmt::format(
      "--sass: no {} in $CUDA_HOME/bin, $CUDA_PATH/bin, $PATH or /usr/local/cuda/bin", name));
}

std::string complaint_of(const std::string& file) {
  Result<std::string> text = read_text(file);
  if (!text.ok()) return {};
  const std::string first = text->substr(0, std::min(text->find('\n'), kMostOfComplaint));
  return first.empty() ? first : ": " + first;
}

// Runs it with its output in `output`; empty: it succeeded.
std::string run_tool(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string errors = output + ".errors";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), kFlags, 0600);
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  const std::string what = fmt::format("--sass: {}", fmt::join(command, " "));
  if (failed != 0) return fmt::format("{}: {}", what, std::strerror(failed));
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(state)) return fmt::format("{}: ended by signal {}", what, WTERMSIG(state));
  if (WEXITSTATUS(state) == 0) return {};
  const std::string complaint = complaint_of(errors);
  return fmt::format("{}: exit status {}{}", what, WEXITSTATUS(state),
                     complaint.empty() ? complaint_of(output) : complaint);
}

Result<std::vector<timing::SassSection>> from_tools(const std::string& kernel,
                                                    const Program& program) {
  Result<std::string> ptxas = tool("ptxas"), nvdisasm = tool("nvdisasm");
  if (!ptxas.ok()) return ptxas.error();
  if (!nvdisasm.ok()) return nvdisasm.error();
  const TemporaryFolder folder;
  if (folder.path().empty()) return refusal("--sass: no folder for temporary files");
  const std::string cubin = folder.path() + "/kernel.cubin", listing = folder.path() + "/listing";
  std::string failed = run_tool({*ptxas, "-arch=" + program.module->target, "-lineinfo", "--entry",
                                 program.entry->name, "-o", cubin, kernel},
                                listing);
  if (failed.empty()) failed = run_tool({*nvdisasm, "-c", "-gp", "-ndf", cubin}, listing);
  if (!failed.empty()) return refusal(failed);
  Result<std::string> text = read_text(listing);
  if (!text.ok()) return text.error();
  return timing::parse_sass(*text, "--sass: " + *nvdisasm);
}

}  // namespace

Result<Sass> sass_of(const std::string& how, const std::string& kernel, const Program& program) {
  if (how == "off") return Sass{{}, "table", {}};
  if (how == "auto" || how == "ptxas") {
    auto sections = from_tools(kernel, program);
    if (sections.ok()) return Sass{std::move(*sections), "ptxas", {}};
    if (how == "ptxas") return sections.error();
    return Sass{{}, "table", sections.error().message};
  }
  Result<std::string> text = read_text(how);
  if (!text.ok()) return text.error();
  auto sections = timing::parse_sass(*text, how);
  if (!sections.ok()) return sections.error();
  return Sass{std::move(*sections), "listing", {}};
}

}  // namespace ptxsim::cli
