#include "tools/checkpoint/staged_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/checkpoint/atomic_file.hpp"

namespace dualgemm::checkpoint {
namespace {

namespace paths = std::filesystem;

constexpr char kSuffix[] = ".tmp";
constexpr char kInfix[] = ".dualgemm-";

Status folder_error(const std::string& path, int error, const char* rule) {
  const StatusCode code = error == ENOENT ? StatusCode::kNotFound : StatusCode::kIoError;
  return Status::error(code, path, std::strerror(error), rule);
}

// ".NAME.dualgemm-": how the names of all staging folders for the target NAME begin.
std::string staging_prefix(const paths::path& target) {
  return "." + target.filename().string().substr(0, 200) + kInfix;
}

std::string staging_name(const paths::path& target) {
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}{}-{}{}", staging_prefix(target), getpid(), counter.fetch_add(1), kSuffix);
}

// Two folders change places in one step. Not in every C library, hence by its number.
int exchange_folders(const std::string& a, const std::string& b) {
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(),
                                  static_cast<unsigned>(RENAME_EXCHANGE)));
}

int open_and_lock(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return -1;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The folder without links and "..", so that its sibling is one.
std::string resolved(const std::string& target) {
  std::error_code error;
  const paths::path whole = paths::canonical(target, error);
  if (!error) return whole;
  std::string text = target;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  const paths::path path(text);
  const paths::path parent =
      paths::canonical(path.has_parent_path() ? path.parent_path() : paths::path("."), error);
  return error ? text : (parent / path.filename()).string();
}

}  // namespace

Expected<StagedFolder> StagedFolder::create(const std::string& target) {
  StagedFolder folder;
  folder.target_ = resolved(target);
  std::error_code ignored;
  folder.target_exists_ = paths::is_directory(folder.target_, ignored);
  if (!folder.target_exists_ && paths::is_symlink(paths::symlink_status(folder.target_, ignored)))
    return Status::invalid(target, "a link to no folder", "must be a folder or a new name");
  folder.sweep(paths::path(folder.target_).parent_path());
  if (folder.target_exists_) folder.sweep(folder.target_);
  DUALGEMM_TRY(folder.make_beside_or_inside());
  return folder;
}

StagedFolder::StagedFolder(StagedFolder&& other) noexcept
    : target_(std::move(other.target_)),
      staging_(std::exchange(other.staging_, {})),
      target_exists_(other.target_exists_),
      inside_(other.inside_),
      lock_(std::exchange(other.lock_, -1)),
      names_(std::move(other.names_)),
      swept_(std::move(other.swept_)),
      unfinished_(std::move(other.unfinished_)) {}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!staging_.empty()) paths::remove_all(staging_, ignored);
  release();
}

void StagedFolder::release() noexcept {
  if (lock_ >= 0) close(std::exchange(lock_, -1));
  unfinished_.clear();
  staging_.clear();
}

// Staging folders that no process holds.
void StagedFolder::sweep(const std::string& folder) {
  const std::string prefix = staging_prefix(target_);
  std::error_code error;
  std::vector<paths::path> left;
  for (const auto& entry : paths::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    std::error_code ignored;
    if (name.starts_with(prefix) && name.ends_with(kSuffix) &&
        paths::is_directory(entry.symlink_status(ignored)))
      left.push_back(entry.path());
  }
  for (const paths::path& path : left) {
    const int fd = open_and_lock(path);
    if (fd < 0) continue;
    if (paths::remove_all(path, error) > 0 && !error) swept_.push_back(path);
    close(fd);
  }
}

Status StagedFolder::make(const std::string& path) {
  unfinished_.push_back(Unfinished({path, true}));
  if (mkdir(path.c_str(), 0777) != 0) {  // the umask takes its part
    const int error = errno;
    unfinished_.clear();
    return folder_error(target_, error, "its parent must exist and be writable");
  }
  staging_ = path;
  lock_ = open_and_lock(path);  // where nothing can be locked, sweep() leaves it
  return {};
}

Status StagedFolder::make_beside_or_inside() {
  const paths::path target(target_);
  const std::string name = staging_name(target), beside = target.parent_path() / name;
  if (!target_exists_) return make(beside);
  DUALGEMM_TRY(make(target / name));
  inside_ = true;
  std::error_code ignored;
  if (paths::equivalent(target, ".", ignored)) return {};  // a shell would stand in the old folder
  const Publishing publishing;
  if (rename(staging_.c_str(), beside.c_str()) != 0) return {};  // a mount point; no permission
  staging_ = beside;
  unfinished_.clear();
  unfinished_.push_back(Unfinished({beside, true}));
  inside_ = false;
  return {};
}

std::string StagedFolder::path(const std::string& name) {
  const std::string path = staging_ + "/" + name;
  unfinished_.push_back(Unfinished({path, false}));
  names_.push_back(name);
  return path;
}

// Links what stays into the staging folder; copies what cannot be linked.
Status StagedFolder::adopt_what_stays(const std::vector<std::string>& obsolete) const {
  std::error_code error;
  for (const auto& entry : paths::directory_iterator(target_, error)) {
    const std::string name = entry.path().filename();
    if (holds(names_, name) || holds(obsolete, name)) continue;
    constexpr auto kDeep = paths::copy_options::recursive | paths::copy_options::copy_symlinks;
    const paths::path to = paths::path(staging_) / name;
    std::error_code failed;
    paths::copy(entry.path(), to, kDeep | paths::copy_options::create_hard_links, failed);
    if (!failed) continue;
    std::error_code ignored;
    paths::remove_all(to, ignored);
    paths::copy(entry.path(), to, kDeep, failed);
    if (failed)
      return Status::error(StatusCode::kIoError, entry.path(), failed.message(),
                           "must be readable, as it stays in the folder");
  }
  if (!error) return {};
  return Status::error(StatusCode::kIoError, target_, error.message(), "must be a readable folder");
}

Status StagedFolder::rename_to_target(const std::vector<std::string>& obsolete) {
  std::error_code error;
  if (target_exists_) {
    struct stat info = {};
    if (stat(target_.c_str(), &info) == 0) chmod(staging_.c_str(), info.st_mode & 07777);
  }
  const bool is_empty = !target_exists_ || paths::is_empty(target_, error);
  if (is_empty) {
    sync_directory(staging_);
    if (rename(staging_.c_str(), target_.c_str()) != 0)
      return folder_error(target_, errno, "the finished folder could not be renamed to it");
    release();
    return {};
  }
  DUALGEMM_TRY(adopt_what_stays(obsolete));
  sync_directory(staging_);
  if (exchange_folders(staging_, target_) != 0) {
    const int failed = errno;
    if (failed != EINVAL && failed != ENOSYS)
      return folder_error(target_, failed, "the finished folder could not take its place");
    return move_inside(obsolete);
  }
  return {};  // what is in the staging folder now goes with it
}

// Names that speak of others, then files in the order in which they were asked for.
Status StagedFolder::move_inside(const std::vector<std::string>& obsolete) {
  std::error_code ignored;
  for (const std::string& name : obsolete) {
    if (!holds(names_, name) || name.ends_with(".json"))
      paths::remove(paths::path(target_) / name, ignored);
  }
  for (auto name = names_.begin(); name != names_.end(); ++name) {
    const std::string from = staging_ + "/" + *name, to = target_ + "/" + *name;
    if (rename(from.c_str(), to.c_str()) == 0) continue;
    const int error = errno;
    for (auto moved = names_.begin(); moved != name; ++moved)
      unlink((target_ + "/" + *moved).c_str());
    return folder_error(to, error, "the finished file could not be renamed to it");
  }
  return {};
}

Status StagedFolder::commit(const std::vector<std::string>& obsolete) {
  if (staging_.empty()) return Status::invalid("commit", "no open folder", "must be called once");
  Status status;
  {
    const Publishing publishing;
    status = inside_ ? move_inside(obsolete) : rename_to_target(obsolete);
    if (!staging_.empty()) {
      std::error_code ignored;
      paths::remove_all(staging_, ignored);
      release();
    }
  }
  if (!status.ok()) return status;
  sync_directory(target_);
  sync_directory(paths::path(target_).parent_path());
  return {};
}

}  // namespace dualgemm::checkpoint
