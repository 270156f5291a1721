/*
 * A disk that can be told to fail, under one process: preloaded (LD_PRELOAD), it sees every system call that changes a file below
 * TENDON_DISK_ROOT, counts it, may answer it with an error instead, and writes down in a journal what it did, so that a test can
 * build what a loss of power would have left at any moment (image.ts).
 *
 * Not a device-mapper target (dm-flakey, dm-log-writes): that needs root and a kernel module, fails blocks of a file system and not
 * calls of this program, and cannot be told to strike the n-th write of a request.
 * Not symbols alone: SQLite calls libc, but Bun's own file functions are system calls without libc. A seccomp filter sends both here
 * (SIGSYS), except those of this file, which are known by the address of their instruction.
 *
 * Linux on x86-64 only. The memory of SQLite (-shm) is no file to keep: it is left out.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the shim knows the system calls of x86-64 only"
#endif

/* Shared with the test (shim.ts), which reads and writes the file. */
struct control {
  uint64_t operations; /* so far; the number of an operation is what this is then */
  uint64_t strike_at;  /* the first operation that fails; 0: none */
  uint64_t strikes;    /* operations that failed */
  uint32_t error;      /* errno of a strike */
  uint32_t kinds;      /* which operations fail: 1 changes, 2 syncs */
  uint32_t lasting;    /* 1: all from strike_at on fail; 0: the first one */
  uint32_t half;       /* 1: the first write that is struck writes its half, and says so */
  uint32_t sync_us;    /* how long a sync takes: what is written meanwhile is not part of it */
  uint32_t lock;       /* one operation at a time, of all processes on this disk */
};

enum { WRITE = 1, TRUNCATE, SYNC, CREATE, MKDIR, RENAME, REMOVE, SYNC_FAILED };

struct record {
  uint64_t number;
  uint64_t inode;
  uint64_t at; /* of a write its offset, of a truncation the size, of a sync how many operations came before its beginning */
  uint32_t kind;
  uint32_t path_bytes; /* below the root */
  uint32_t data_bytes; /* of a rename the new path */
  uint32_t unused;
};

static struct control *control;
static int journal = -1;
static char root[PATH_MAX];
static size_t root_bytes;

/*
 * The one place whose system calls the filter lets through: a page at an address that is the same in every process, since the
 * filter goes on in the programs that a process starts.
 */
#define OWN_PAGE 0x510000000000
static const unsigned char OWN_CODE[] = {
  0x48, 0x89, 0xf8,             /* mov rax, rdi */
  0x48, 0x89, 0xf7,             /* mov rdi, rsi */
  0x48, 0x89, 0xd6,             /* mov rsi, rdx */
  0x48, 0x89, 0xca,             /* mov rdx, rcx */
  0x4d, 0x89, 0xc2,             /* mov r10, r8 */
  0x4d, 0x89, 0xc8,             /* mov r8, r9 */
  0x4c, 0x8b, 0x4c, 0x24, 0x08, /* mov r9, [rsp + 8] */
  0x0f, 0x05,                   /* syscall */
  0xc3,                         /* ret */
};
#define OWN_RETURN (OWN_PAGE + sizeof OWN_CODE - 1)
static long (*const disk_call)(long number, long a, long b, long c, long d, long e, long f) = (void *)OWN_PAGE;

#define CALL3(n, a, b, c) disk_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static void enter(void) {
  struct timespec pause = {0, 20000};
  while (__atomic_exchange_n(&control->lock, 1, __ATOMIC_ACQUIRE)) CALL3(SYS_nanosleep, &pause, 0, 0);
}

static void leave(void) { __atomic_store_n(&control->lock, 0, __ATOMIC_RELEASE); }

static void fatal(const char *text) {
  CALL3(SYS_write, 2, text, strlen(text));
  CALL3(SYS_exit_group, 99, 0, 0);
}

/* The path below the root, or NULL where the file is none of those that are kept. */
static const char *below(const char *path) {
  if (strncmp(path, root, root_bytes) != 0 || (path[root_bytes] != '/' && path[root_bytes] != 0)) return NULL;
  size_t bytes = strlen(path);
  if (bytes > 4 && strcmp(path + bytes - 4, "-shm") == 0) return NULL;
  return path[root_bytes] == 0 ? "." : path + root_bytes + 1;
}

static void link_name(char *name, int fd) {
  char digits[12];
  int count = 0;
  do digits[count++] = (char)('0' + fd % 10);
  while ((fd /= 10) > 0);
  strcpy(name, "/proc/self/fd/");
  size_t at = strlen(name);
  while (count > 0) name[at++] = digits[--count];
  name[at] = 0;
}

static const char *fd_path(int fd, char *path) {
  char name[40];
  if (fd < 0) return NULL;
  link_name(name, fd);
  long bytes = CALL3(SYS_readlink, name, path, PATH_MAX - 1);
  if (bytes <= 0) return NULL;
  path[bytes] = 0;
  return path;
}

static const char *resolved(int folder, const char *given, char *path) {
  if (given[0] == '/') {
    if (strlen(given) >= PATH_MAX) return NULL;
    strcpy(path, given);
    return below(path);
  }
  if (folder == AT_FDCWD) {
    long bytes = CALL3(SYS_readlink, "/proc/self/cwd", path, PATH_MAX - 1);
    if (bytes <= 0) return NULL;
    path[bytes] = 0;
  } else if (!fd_path(folder, path)) {
    return NULL;
  }
  if (strlen(path) + strlen(given) + 2 > PATH_MAX) return NULL;
  strcat(path, "/");
  strcat(path, given);
  return below(path);
}

/* A file that is kept, open at `fd`: its path below the root; 0 in `inode` where it is none. */
static const char *kept(int fd, char *path, uint64_t *inode) {
  struct stat facts;
  if (CALL3(SYS_fstat, fd, &facts, 0) != 0 || !(S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))) return NULL;
  if (!fd_path(fd, path)) return NULL;
  *inode = facts.st_ino;
  return below(path);
}

static uint64_t inode_of(const char *path) {
  struct stat facts;
  return CALL3(SYS_lstat, path, &facts, 0) == 0 ? facts.st_ino : 0;
}

static void write_down(const struct record *record, const char *path, const void *data) {
  struct iovec parts[3] = {
    {(void *)record, sizeof *record}, {(void *)path, record->path_bytes}, {(void *)data, record->data_bytes}};
  long all = (long)(sizeof *record + record->path_bytes + record->data_bytes);
  if (CALL3(SYS_writev, journal, parts, 3) != all) fatal("the journal of the disk cannot be written\n");
}

static void done(uint32_t kind, const char *path, uint64_t inode, uint64_t at, const void *data, size_t bytes) {
  struct record record = {control->operations, inode, at, kind, (uint32_t)strlen(path), (uint32_t)bytes, 0};
  write_down(&record, path, data);
}

/* Counts an operation; whether it is struck. Under the lock. */
static int struck(uint32_t kind) {
  control->operations += 1;
  if (control->strike_at == 0 || control->operations < control->strike_at || !(control->kinds & kind)) return 0;
  if (!control->lasting && control->strikes > 0) return 0;
  control->strikes += 1;
  return 1;
}

static long sync_file(long number, int fd) {
  char path[PATH_MAX];
  uint64_t inode = 0;
  const char *name = kept(fd, path, &inode);
  if (!name) return CALL3(number, fd, 0, 0);
  enter();
  uint64_t before = control->operations;
  leave();
  if (control->sync_us > 0) {
    struct timespec pause = {0, (long)control->sync_us * 1000};
    CALL3(SYS_nanosleep, &pause, 0, 0);
  }
  enter();
  int failed = struck(2);
  done(failed ? SYNC_FAILED : SYNC, name, inode, before, NULL, 0);
  long outcome = failed ? -(long)control->error : 0;
  leave();
  return outcome;
}

/* One call that writes `data`; `offset` < 0: where the file stands. */
static long write_bytes(int fd, const char *name, uint64_t inode, const void *data, size_t bytes, long offset) {
  if (struck(1)) {
    if (!control->half || control->strikes > 1 || bytes < 2) return -(long)control->error;
    bytes /= 2;
  }
  if (offset < 0) {
    long flags = CALL3(SYS_fcntl, fd, F_GETFL, 0);
    offset = CALL3(SYS_lseek, fd, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
    long written = CALL3(SYS_write, fd, data, bytes);
    if (written > 0) done(WRITE, name, inode, (uint64_t)offset, data, (size_t)written);
    return written;
  }
  long written = disk_call(SYS_pwrite64, fd, (long)data, (long)bytes, offset, 0, 0);
  if (written > 0) done(WRITE, name, inode, (uint64_t)offset, data, (size_t)written);
  return written;
}

static long write_parts(int fd, const struct iovec *parts, int count, long offset, const char *name, uint64_t inode) {
  long all = 0;
  for (int index = 0; index < count; index += 1) {
    if (parts[index].iov_len == 0) continue;
    long at = offset < 0 ? -1 : offset + all;
    long written = write_bytes(fd, name, inode, parts[index].iov_base, parts[index].iov_len, at);
    if (written < 0) return all > 0 ? all : written;
    all += written;
    if ((size_t)written < parts[index].iov_len) break;
  }
  return all;
}

static long open_file(long number, const long *a) {
  int at = number == SYS_openat;
  long flags = number == SYS_creat ? O_CREAT | O_TRUNC | O_WRONLY : a[at + 1];
  char path[PATH_MAX];
  const char *name = resolved(at ? (int)a[0] : AT_FDCWD, (const char *)a[at], path);
  if (!name || (flags & O_TMPFILE) == O_TMPFILE) return disk_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  enter();
  uint64_t before = inode_of(path);
  long outcome;
  if ((before == 0 || flags & O_TRUNC) && struck(1)) {
    outcome = -(long)control->error;
  } else {
    outcome = disk_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (outcome >= 0 && before == 0) done(CREATE, name, inode_of(path), 0, NULL, 0);
    else if (outcome >= 0 && flags & O_TRUNC) done(TRUNCATE, name, before, 0, NULL, 0);
  }
  leave();
  return outcome;
}

static long change_name(uint32_t kind, long number, const long *a, int folder, const char *given) {
  char path[PATH_MAX], other[PATH_MAX];
  const char *name = resolved(folder, given, path);
  if (!name) return disk_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const char *target = NULL;
  if (kind == RENAME) {
    int at = number != SYS_rename;
    target = resolved(at ? (int)a[2] : AT_FDCWD, (const char *)a[at ? 3 : 1], other);
    if (!target) fatal("a file leaves the folder that is kept\n");
  }
  enter();
  uint64_t inode = inode_of(path);
  long outcome;
  /* A removal needs no room. */
  if ((kind == MKDIR || inode != 0) && !(kind == REMOVE && control->error == ENOSPC) && struck(1)) {
    outcome = -(long)control->error;
  } else {
    outcome = disk_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (outcome == 0) done(kind, name, kind == MKDIR ? inode_of(path) : inode, 0, target, target ? strlen(target) : 0);
  }
  leave();
  return outcome;
}

static long answer(long number, const long *a) {
  char path[PATH_MAX];
  uint64_t inode = 0;
  const char *name;
  long outcome;
  switch (number) {
    case SYS_fsync:
    case SYS_fdatasync:
      return sync_file(number, (int)a[0]);
    case SYS_open:
    case SYS_openat:
    case SYS_creat:
      return open_file(number, a);
    case SYS_mkdir:
      return change_name(MKDIR, number, a, AT_FDCWD, (const char *)a[0]);
    case SYS_mkdirat:
      return change_name(MKDIR, number, a, (int)a[0], (const char *)a[1]);
    case SYS_rename:
      return change_name(RENAME, number, a, AT_FDCWD, (const char *)a[0]);
    case SYS_renameat:
    case SYS_renameat2:
      return change_name(RENAME, number, a, (int)a[0], (const char *)a[1]);
    case SYS_unlink:
    case SYS_rmdir:
      return change_name(REMOVE, number, a, AT_FDCWD, (const char *)a[0]);
    case SYS_unlinkat:
      return change_name(REMOVE, number, a, (int)a[0], (const char *)a[1]);
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_ftruncate:
      name = kept((int)a[0], path, &inode);
      if (!name) break;
      enter();
      if (number == SYS_write) outcome = write_bytes((int)a[0], name, inode, (void *)a[1], (size_t)a[2], -1);
      else if (number == SYS_pwrite64) outcome = write_bytes((int)a[0], name, inode, (void *)a[1], (size_t)a[2], a[3]);
      else if (number == SYS_writev) outcome = write_parts((int)a[0], (void *)a[1], (int)a[2], -1, name, inode);
      else if (number == SYS_pwritev) outcome = write_parts((int)a[0], (void *)a[1], (int)a[2], a[3], name, inode);
      else if (struck(1)) outcome = -(long)control->error;
      else {
        outcome = CALL3(number, a[0], a[1], 0);
        if (outcome == 0) done(TRUNCATE, name, inode, (uint64_t)a[1], NULL, 0);
      }
      leave();
      return outcome;
    case SYS_fallocate:
      if (kept((int)a[0], path, &inode)) fatal("fallocate is not known to the shim\n");
      break;
    case SYS_copy_file_range:
    case SYS_pwritev2:
      if (kept((int)a[number == SYS_copy_file_range ? 2 : 0], path, &inode)) fatal("a way to write that the shim does not know\n");
      break;
    case SYS_sendfile:
      if (kept((int)a[0], path, &inode)) fatal("sendfile into a file is not known to the shim\n");
      break;
    case SYS_link:
    case SYS_linkat:
    case SYS_truncate:
      fatal("a call that the shim does not know\n");
  }
  return disk_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void trapped(int signal, siginfo_t *info, void *context) {
  (void)signal;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  int before = errno;
  long a[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
               registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  registers[REG_RAX] = answer(info->si_syscall, a);
  errno = before;
}

static int guarded;

/* Bun has its handler for every signal that kills; that of the filter's signal stays ours. */
int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before) {
  static int (*next)(int, const struct sigaction *, struct sigaction *);
  if (!next) next = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
  return next(number, number == SIGSYS && guarded ? NULL : action, before);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define TRAP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define TRAP_IF(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), TRAP
/* An open that may change something; `which`: the argument with its flags. */
#define TRAP_OPEN(nr, which) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4), LOAD(args[which]), \
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1), TRAP, ALLOW

static void filter_calls(void) {
  const uint64_t own = OWN_RETURN;
  struct sock_filter steps[] = {
    LOAD(instruction_pointer),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)own, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(own >> 32), 0, 1),
    ALLOW,
    LOAD(nr),
    TRAP_IF(SYS_write), TRAP_IF(SYS_pwrite64), TRAP_IF(SYS_writev), TRAP_IF(SYS_pwritev), TRAP_IF(SYS_pwritev2),
    TRAP_IF(SYS_fsync), TRAP_IF(SYS_fdatasync), TRAP_IF(SYS_ftruncate), TRAP_IF(SYS_truncate), TRAP_IF(SYS_fallocate),
    TRAP_IF(SYS_rename), TRAP_IF(SYS_renameat), TRAP_IF(SYS_renameat2), TRAP_IF(SYS_unlink), TRAP_IF(SYS_unlinkat),
    TRAP_IF(SYS_mkdir), TRAP_IF(SYS_mkdirat), TRAP_IF(SYS_rmdir), TRAP_IF(SYS_link), TRAP_IF(SYS_linkat),
    TRAP_IF(SYS_copy_file_range), TRAP_IF(SYS_sendfile), TRAP_IF(SYS_creat),
    TRAP_OPEN(SYS_open, 1), TRAP_OPEN(SYS_openat, 2),
    ALLOW,
  };
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_RESTART};
  /* Nothing may stop a thread that has the lock. */
  sigfillset(&action.sa_mask);
  if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fatal("the shim of the disk cannot filter system calls here\n");
  }
}

__attribute__((constructor)) static void begin(void) {
  void *page = mmap((void *)OWN_PAGE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page != (void *)OWN_PAGE) _exit(98);
  memcpy(page, OWN_CODE, sizeof OWN_CODE);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) _exit(98);
  const char *folder = getenv("TENDON_DISK_ROOT"), *file = getenv("TENDON_DISK_CONTROL"), *log = getenv("TENDON_DISK_JOURNAL");
  if (!folder || !file || !log || !realpath(folder, root)) fatal("the shim of the disk is not told where it works\n");
  root_bytes = strlen(root);
  int fd = open(file, O_RDWR | O_CLOEXEC);
  control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  journal = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0 || control == MAP_FAILED || journal < 0) fatal("the files of the shim of the disk cannot be opened\n");
  close(fd);
  filter_calls();
  guarded = 1;
}
