#include "cli/case_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include "case/draft.hpp"
#include "cli/loaded.hpp"
#include "printable.hpp"

namespace ptxsim::cli {
namespace {

// A file that is there already is refused by the system itself, so that none is lost to a race.
Result<int> write_file(const std::string& path, const std::string& text, bool force) {
  const auto refusal = [&](const std::string& what) {
    return Error{ErrorKind::kInput, fmt::format("--out: '{}' {}", path, what), {}};
  };
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL);
  const int file = open(path.c_str(), flags, 0666);
  if (file < 0 && errno == EEXIST) return refusal("is there already; --force overwrites it");
  if (file < 0) return refusal(fmt::format("cannot be written: {}", std::strerror(errno)));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  if (close(file) != 0 || done < text.size()) return refusal("cannot be written");
  return 0;
}

}  // namespace

void add_case_options(CLI::App& app, CaseArgs& args) {
  app.add_option("kernel", args.kernel, "PTX file")->required();
  app.add_option("--entry", args.entry, "Kernel; default: the only one");
  app.add_option("--out", args.out, "File to write; -: stdout")->capture_default_str();
  app.add_flag("--force", args.force, "Overwrite the file");
}

int case_command(const CaseArgs& args) {
  Result<std::string> text = read_kernel(args.kernel);
  if (!text.ok()) return print_error(text.error());
  auto module = load(*text, args.kernel);
  if (!module.ok()) return print_error(module.error());
  auto program = decode(*module, args.entry);  // a case is for what can run
  if (!program.ok()) return print_error(program.error());
  const CaseDraft draft = draft_case(**module, *(*program)->entry);
  if (args.out == "-") {
    std::cout << draft.json;
  } else {
    Result<int> written = write_file(args.out, draft.json, args.force);
    if (!written.ok()) return print_error(written.error());
    std::cout << fmt::format(
        "{}: entry {}, {} parameters, {} buffers; {} comments say \"todo\" where a person must "
        "decide\n",
        printable(args.out, kLongestPath), printable((*program)->entry->name, kLongestName),
        draft.parameters, draft.buffers, draft.todos);
  }
  if (!std::cout.flush()) return print_error({ErrorKind::kInput, "cannot write the results", {}});
  return 0;
}

}  // namespace ptxsim::cli
