// Stands before the C library, by LD_PRELOAD, and counts the file-system calls that this process makes below one
// folder. The one whose turn it is fails with a chosen errno, or the process is killed before it. Below Python: what is
// tested is what an operating system would do.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long counted, at;
static int number, armed, log_file = -1;
static const char* roots;
static char working[4096];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((visibility("default"))) void fault_arm(const char* folders, long which, int error,
                                                      const char* log) {
  roots = strdup(folders);
  at = which;
  number = error;
  counted = 0;
  log_file = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  armed = 1;
}

__attribute__((visibility("default"))) long fault_disarm(void) {
  armed = 0;
  REAL(close)(log_file);
  return counted;
}

static int below(const char* path) {
  for (const char* root = roots; *root;) {
    size_t length = strcspn(root, ":");
    if (!strncmp(path, root, length) && (path[length] == '/' || !path[length])) return 1;
    root += length + (root[length] == ':');
  }
  return 0;
}

static int refused(const char* call) {
  static __thread int busy;
  if (busy) return 0;
  busy = 1;
  counted++;
  if (REAL(write)(log_file, call, strlen(call)) < 0 || REAL(write)(log_file, "\n", 1) < 0) abort();
  int due = counted == at;
  if (due && !number) kill(getpid(), SIGKILL);
  busy = 0;
  if (due) errno = number;
  return due;
}

static int at_path(int folder, const char* path, const char* call) {
  if (!armed || !path) return 0;
  if (path[0] == '/') return below(path) && refused(call);
  if (folder == AT_FDCWD) return getcwd(working, sizeof working) && below(working) && refused(call);
  char link[64], place[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  ssize_t length = REAL(readlink)(link, place, sizeof place - 1);
  if (length < 0) return 0;
  place[length] = 0;
  return below(place) && refused(call);
}

static int at_descriptor(int descriptor, const char* call) {
  if (!armed) return 0;
  char link[64], place[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = REAL(readlink)(link, place, sizeof place - 1);
  if (length < 0) return 0;
  place[length] = 0;
  return below(place) && refused(call);
}

#define BY_PATH(type, failure, name, takes, gives, path) \
  type name takes { return at_path(AT_FDCWD, path, #name) ? failure : REAL(name) gives; }
#define WITHIN(type, failure, name, takes, gives, path) \
  type name takes { return at_path(folder, path, #name) ? failure : REAL(name) gives; }
#define BY_DESCRIPTOR(type, name, takes, gives) \
  type name takes { return at_descriptor(descriptor, #name) ? -1 : REAL(name) gives; }

static mode_t mode_of(int flags, va_list more) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

#define OPENING(name, what, passed) \
  int name what { \
    va_list more; \
    va_start(more, flags); \
    mode_t mode = mode_of(flags, more); \
    va_end(more); \
    if (at_path(folder, path, "open")) return -1; \
    return REAL(name) passed; \
  }
#define folder AT_FDCWD
OPENING(open, (const char* path, int flags, ...), (path, flags, mode))
OPENING(open64, (const char* path, int flags, ...), (path, flags, mode))
#undef folder
OPENING(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
OPENING(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))

BY_PATH(int, -1, mkdir, (const char* path, mode_t mode), (path, mode), path)
BY_PATH(int, -1, rmdir, (const char* path), (path), path)
BY_PATH(int, -1, unlink, (const char* path), (path), path)
BY_PATH(int, -1, chmod, (const char* path, mode_t mode), (path, mode), path)
BY_PATH(int, -1, rename, (const char* path, const char* to), (path, to), path)
BY_PATH(int, -1, stat, (const char* path, struct stat* found), (path, found), path)
BY_PATH(int, -1, lstat, (const char* path, struct stat* found), (path, found), path)
BY_PATH(DIR*, NULL, opendir, (const char* path), (path), path)
BY_PATH(ssize_t, -1, readlink, (const char* restrict path, char* restrict text, size_t size),
        (path, text, size), path)
WITHIN(int, -1, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), path)
WITHIN(int, -1, unlinkat, (int folder, const char* path, int flags), (folder, path, flags), path)
WITHIN(int, -1, fchmodat, (int folder, const char* path, mode_t mode, int flags), (folder, path, mode, flags),
       path)
WITHIN(int, -1, fstatat, (int folder, const char* restrict path, struct stat* restrict found, int flags),
       (folder, path, found, flags), path)
WITHIN(int, -1, utimensat, (int folder, const char* path, const struct timespec times[2], int flags),
       (folder, path, times, flags), path)
WITHIN(int, -1, renameat, (int folder, const char* path, int other, const char* to),
       (folder, path, other, to), path)
BY_PATH(int, -1, stat64, (const char* path, struct stat64* found), (path, found), path)
BY_PATH(int, -1, lstat64, (const char* path, struct stat64* found), (path, found), path)
BY_PATH(int, -1, link, (const char* path, const char* to), (path, to), to)
BY_PATH(int, -1, symlink, (const char* target, const char* path), (target, path), path)
BY_PATH(FILE*, NULL, fopen64, (const char* restrict path, const char* restrict how), (path, how), path)
WITHIN(int, -1, fstatat64, (int folder, const char* restrict path, struct stat64* restrict found, int flags),
       (folder, path, found, flags), path)
BY_DESCRIPTOR(int, fstat64, (int descriptor, struct stat64* found), (descriptor, found))
BY_DESCRIPTOR(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size))
BY_DESCRIPTOR(int, fsync, (int descriptor), (descriptor))
BY_DESCRIPTOR(int, flock, (int descriptor, int how), (descriptor, how))
BY_DESCRIPTOR(int, fstat, (int descriptor, struct stat* found), (descriptor, found))
BY_DESCRIPTOR(int, fchmod, (int descriptor, mode_t mode), (descriptor, mode))
BY_DESCRIPTOR(int, ftruncate, (int descriptor, off_t size), (descriptor, size))
BY_DESCRIPTOR(ssize_t, read, (int descriptor, void* data, size_t size), (descriptor, data, size))
BY_DESCRIPTOR(ssize_t, write, (int descriptor, const void* data, size_t size), (descriptor, data, size))

DIR* fdopendir(int descriptor) {
  return at_descriptor(descriptor, "fdopendir") ? NULL : REAL(fdopendir)(descriptor);
}

struct dirent64* readdir64(DIR* entries) {
  return at_descriptor(dirfd(entries), "readdir") ? NULL : REAL(readdir64)(entries);
}

// A descriptor is gone whatever close says.
int close(int descriptor) {
  int due = at_descriptor(descriptor, "close"), error = errno, status = REAL(close)(descriptor);
  if (due) errno = error;
  return due ? -1 : status;
}
