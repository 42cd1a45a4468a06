/* The soak's fault hook, preloaded: while the file $SOAK_FAULT exists, what it names fails. `write 28` makes every write to a file
   below $SOAK_PATH end with errno 28; `recv 104` makes every receive on a stream socket of the measurer end with errno 104; `clock 60`
   shifts the wall clock by 60 s, the monotonic one stays. Nothing of fabricbench knows of it. Linked against the yield library it takes that one's place, for ranks whose LD_PRELOAD the run sets itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int asked(const char *what)
{
    const char *path = getenv("SOAK_FAULT");
    char text[32] = "", word[16] = "";
    int number = 0, file, saved = errno;
    long length;
    if (path == NULL || (file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC)) < 0) {
        errno = saved;
        return 0;
    }
    length = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    errno = saved;
    return length > 0 && sscanf(text, "%15s %d", word, &number) == 2 && strcmp(word, what) == 0 ? number : 0;
}

static int write_fault(int file)
{
    const char *below = getenv("SOAK_PATH");
    char link[64], target[4096];
    long length;
    if (below == NULL || asked("write") == 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, target, sizeof target - 1);
    if (length <= 0)
        return 0;
    target[length] = '\0';
    return strncmp(target, below, strlen(below)) == 0 ? asked("write") : 0;
}

static int receive_fault(int file)
{
    int saved = errno, kind = 0, family = 0, number = 0;
    socklen_t size = sizeof kind;
    if (strncmp(program_invocation_short_name, "fabricbench-pro", 15) == 0 &&
        getsockopt(file, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_STREAM &&
        getsockopt(file, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_INET)
        number = asked("recv");
    errno = saved;
    return number;
}

#define FAIL_IF(number)                                                                                                             \
    do {                                                                                                                            \
        int found = (number);                                                                                                       \
        if (found != 0) {                                                                                                           \
            errno = found;                                                                                                          \
            return -1;                                                                                                              \
        }                                                                                                                           \
    } while (0)

ssize_t write(int file, const void *data, size_t size)
{
    FAIL_IF(write_fault(file));
    return syscall(SYS_write, file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    FAIL_IF(write_fault(file));
    return syscall(SYS_writev, file, parts, count);
}

int fsync(int file)
{
    FAIL_IF(write_fault(file));
    return (int)syscall(SYS_fsync, file);
}

/* What the C library flushes by itself does not come by `write`. */
size_t fwrite(const void *data, size_t size, size_t count, FILE *stream)
{
    static size_t (*next)(const void *, size_t, size_t, FILE *);
    int number = write_fault(fileno(stream));
    if (number != 0) {
        errno = number;
        return 0;
    }
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "fwrite");
    return next(data, size, count, stream);
}

ssize_t recv(int file, void *data, size_t size, int flags)
{
    FAIL_IF(receive_fault(file));
    return syscall(SYS_recvfrom, file, data, size, flags, NULL, NULL);
}

ssize_t recvmsg(int file, struct msghdr *message, int flags)
{
    FAIL_IF(receive_fault(file));
    return syscall(SYS_recvmsg, file, message, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int code = (int)syscall(SYS_clock_gettime, clock, now);
    if (code == 0 && clock == CLOCK_REALTIME)
        now->tv_sec += asked("clock");
    return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int code = (int)syscall(SYS_gettimeofday, now, zone);
    if (code == 0)
        now->tv_sec += asked("clock");
    return code;
}

time_t time(time_t *where)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where != NULL)
        *where = now.tv_sec;
    return now.tv_sec;
}
