// Preloaded into the command by tests: counts the calls that touch files, and does something at one
// of them. The environment says what:
//   FILE_FAULTS_COUNT=FILE  writes how many calls there were to FILE at the end
//   FILE_FAULTS_AT=N        the N-th call, from 1, ...
//   FILE_FAULTS_ACTION=     kill, term, int, hup: ... gets this signal before it happens
//                           fail: ... fails with EIO
//   FILE_FAULTS_NO_TMPFILE  O_TMPFILE is refused, as on NFS
//   FILE_FAULTS_CUT=FILE    FILE is cut to one page once it is mapped
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;

static int fault_signal(const char* action) {
  if (strcmp(action, "kill") == 0) return SIGKILL;
  if (strcmp(action, "term") == 0) return SIGTERM;
  if (strcmp(action, "int") == 0) return SIGINT;
  if (strcmp(action, "hup") == 0) return SIGHUP;
  return 0;
}

// True: the call must fail, errno is set.
static int fault(void) {
  const long call = atomic_fetch_add(&calls, 1) + 1;
  const char* at = getenv("FILE_FAULTS_AT");
  if (at == NULL || call != atol(at)) return 0;
  const char* action = getenv("FILE_FAULTS_ACTION");
  const int signal = action == NULL ? 0 : fault_signal(action);
  if (signal != 0) raise(signal);
  errno = EIO;
  return action != NULL && strcmp(action, "fail") == 0;
}

__attribute__((destructor)) static void write_count(void) {
  const char* path = getenv("FILE_FAULTS_COUNT");
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(result, failure, name, parameters, arguments) \
  result name parameters {                                 \
    if (fault()) return failure;                           \
    return NEXT(name) arguments;                           \
  }

static int refused_tmpfile(int flags) {
  if ((flags & O_TMPFILE) != O_TMPFILE || getenv("FILE_FAULTS_NO_TMPFILE") == NULL) return 0;
  errno = EOPNOTSUPP;
  return 1;
}

#define WRAP_OPEN(name)                                                                  \
  int name(const char* path, int flags, ...) {                                           \
    va_list list;                                                                        \
    va_start(list, flags);                                                               \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0; \
    va_end(list);                                                                        \
    if (refused_tmpfile(flags) || fault()) return -1;                                    \
    return NEXT(name)(path, flags, mode);                                                \
  }
WRAP_OPEN(open)
WRAP_OPEN(open64)

WRAP(ssize_t, -1, write, (int fd, const void* data, size_t size), (fd, data, size))
WRAP(int, -1, close, (int fd), (fd))
WRAP(int, -1, fsync, (int fd), (fd))
WRAP(int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, -1, chmod, (const char* path, mode_t mode), (path, mode))
WRAP(int, -1, mkdir, (const char* path, mode_t mode), (path, mode))
WRAP(int, -1, rmdir, (const char* path), (path))
WRAP(int, -1, unlink, (const char* path), (path))
WRAP(int, -1, unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
WRAP(int, -1, remove, (const char* path), (path))
WRAP(int, -1, rename, (const char* from, const char* to), (from, to))
WRAP(int, -1, link, (const char* from, const char* to), (from, to))
WRAP(int, -1, linkat, (int a, const char* from, int b, const char* to, int flags),
     (a, from, b, to, flags))
WRAP(int, -1, flock, (int fd, int operation), (fd, operation))
WRAP(int, -1, access, (const char* path, int mode), (path, mode))
WRAP(ssize_t, -1, readlink, (const char* path, char* target, size_t size), (path, target, size))
WRAP(int, -1, stat, (const char* path, struct stat* info), (path, info))
WRAP(int, -1, lstat, (const char* path, struct stat* info), (path, info))
WRAP(int, -1, fstat, (int fd, struct stat* info), (fd, info))
WRAP(DIR*, NULL, opendir, (const char* path), (path))
WRAP(DIR*, NULL, fdopendir, (int fd), (fd))

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && fault()) return MAP_FAILED;
  void* mapped = NEXT(mmap)(address, size, protection, flags, fd, offset);
  const char* cut = fd >= 0 ? getenv("FILE_FAULTS_CUT") : NULL;
  struct stat a, b;
  if (cut != NULL && NEXT(stat)(cut, &a) == 0 && NEXT(fstat)(fd, &b) == 0 && a.st_ino == b.st_ino)
    (void)!truncate(cut, sysconf(_SC_PAGESIZE));
  return mapped;
}

long syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_renameat2 && fault()) return -1;
  return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
