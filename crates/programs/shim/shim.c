/* Runs inside a program that is scheduled: its clock, its waits and its random numbers are the scheduler's.
 *
 * Every call that waits registers in a slot of its thread. Who registers last says so on the control socket: all threads wait. The
 * scheduler then writes a line to standard input, or sends a new time; the thread whose wait that ends goes on. Nothing here waits for
 * real time to pass. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define SECOND 1000000000ull
/* What the clocks show when a program starts. */
#define REALTIME (1700000000ull * SECOND)
#define MONOTONIC (1000ull * SECOND)
#define SLOTS 512
/* How far behind a deadline the clock is set. */
#define BEHIND 1000ull
/* Empty polls in a row after which a program that polls counts as waiting. */
#define EMPTY 3
/* Numbers of futex operations, as the kernel has them. */
#define FUTEX_WAIT_ 0
#define FUTEX_WAIT_BITSET_ 9
#define FUTEX_PRIVATE_FLAG_ 128
#define FUTEX_CLOCK_REALTIME_ 256

enum { FREE, RUNNING, WAITING };
enum { READER = 1, POLLER = 2, FORKED = 4, CONNECTED = 8, CROWDED = 16 };

struct slot {
    int state;
    pid_t tid;
    uint64_t deadline;
    int flags;
    int woken;
    pthread_cond_t *condition;
};

/* What is said on the control socket; the scheduler reads it in this layout. */
struct report {
    uint64_t number, clock, earliest;
    uint32_t flags, threads;
};

/* What the scheduler says. GO: the time is now this, and a program with one thread may go on by itself until then, unless it writes something.
 * Each of its empty polls takes that long. COPY: the process makes a copy of itself, which opens as its standard input, output and error what the
 * scheduler has open under these numbers. */
enum { GO, COPY };
struct order {
    uint64_t kind;
    union {
        struct {
            uint64_t clock, until, quantum;
        };
        uint64_t opened[3];
    };
};

enum { NOBODY, WANTED, MAKING, MADE };

static int control = -1;
static atomic_uint_fast64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[SLOTS];
static uint64_t reports;
static uint64_t run_until, quantum;
static atomic_int wrote;
static int refused;
static uint64_t seed;
static __thread struct slot *mine;
static __thread int empty;
static __thread uint64_t empty_at;
static pthread_key_t leaving;
static atomic_int copying;
static uint64_t opened[3];
static pid_t copied, scheduler;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static __typeof__(pthread_create) *create;

#define REAL(name)                                                  \
    static __typeof__(name) *real;                                  \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int active(void) { return control >= 0; }

static pid_t own_tid(void) { return (pid_t)syscall(SYS_gettid); }

static void say(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t written = send(control, at, length, MSG_NOSIGNAL);
        if (written < 0) {
            if (errno == EINTR) continue;
            _exit(137);
        }
        at += written;
        length -= (size_t)written;
    }
}

/* Says that all threads wait, if they do. The lock is held. */
static void announce(void) {
    struct report report = {0, atomic_load(&now), NEVER, (uint32_t)refused, 0};
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        if (slot->state == FREE) continue;
        if (slot->state == RUNNING || slot->woken) return;
        report.threads++;
        report.flags |= (uint32_t)slot->flags;
        if (slot->deadline < report.earliest) report.earliest = slot->deadline;
    }
    report.number = ++reports;
    say(&report, sizeof report);
}

static struct slot *taken(pid_t tid) {
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].state == FREE) {
            memset(&slots[i], 0, sizeof slots[i]);
            slots[i].state = RUNNING;
            slots[i].tid = tid;
            slots[i].deadline = NEVER;
            return &slots[i];
        }
    }
    refused |= CROWDED;
    return NULL;
}

/* Whether something that it wrote was not taken yet: what the C library writes by itself is seen here alone. */
static int is_written(void) {
    int bytes = 0;
    return atomic_load(&wrote) || (ioctl(1, FIONREAD, &bytes) == 0 && bytes > 0);
}

static int threads(void) {
    int count = 0;
    for (int i = 0; i < SLOTS; i++) count += slots[i].state != FREE;
    return count;
}

/* Whether it goes on by itself, being the only thread: then the time that it waits for has come. */
static int goes_on(uint64_t deadline, int flags) {
    int error = errno, on = 0;
    pthread_mutex_lock(&lock);
    uint64_t at = atomic_load(&now);
    uint64_t next = deadline != NEVER ? (deadline > at ? deadline : at) + BEHIND : flags & POLLER ? at + quantum : NEVER;
    if (run_until > at && next <= run_until && threads() == 1 && !is_written()) {
        atomic_store(&now, next);
        on = 1;
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return on;
}

static void park(uint64_t deadline, int flags, pthread_cond_t *condition) {
    int error = errno;
    pthread_mutex_lock(&lock);
    run_until = 0;
    if (!mine) mine = taken(own_tid());
    if (mine) {
        mine->deadline = deadline;
        mine->flags = flags;
        mine->condition = condition;
        mine->woken = 0;
        mine->state = WAITING;
        announce();
    }
    pthread_mutex_unlock(&lock);
    errno = error;
}

/* Whether the time for which it waited has come. */
static int unpark(void) {
    int error = errno, woken = 0;
    pthread_mutex_lock(&lock);
    if (mine) {
        woken = mine->woken;
        mine->state = RUNNING;
        mine->deadline = NEVER;
        mine->flags = 0;
        mine->woken = 0;
        mine->condition = NULL;
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return woken;
}

static int is_woken(void) { return mine && __atomic_load_n(&mine->woken, __ATOMIC_SEQ_CST); }

static void left(void *slot) {
    pthread_mutex_lock(&lock);
    ((struct slot *)slot)->state = FREE;
    mine = NULL;
    /* It may have been the one that the others' announcement lacked. */
    announce();
    pthread_mutex_unlock(&lock);
}

static int wake_signal(void) { return SIGRTMIN + 7; }

static void nap(void) {
    struct timespec time = {0, 20000};
    syscall(SYS_nanosleep, &time, NULL);
}

/* Ends the wait of the first thread whose time has come; of those that poll, if none waits for a time. */
static void wake(void) {
    pthread_mutex_lock(&lock);
    struct slot *chosen = NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[i];
        if (slot->state == WAITING && slot->deadline <= atomic_load(&now) && (!chosen || slot->deadline < chosen->deadline))
            chosen = slot;
    }
    for (int i = 0; i < SLOTS && !chosen; i++)
        if (slots[i].state == WAITING && (slots[i].flags & POLLER)) chosen = &slots[i];
    if (!chosen) {
        announce();
        pthread_mutex_unlock(&lock);
        return;
    }
    __atomic_store_n(&chosen->woken, 1, __ATOMIC_SEQ_CST);
    /* A signal between the registration and the wait is lost, so it is sent until the thread goes on. */
    while (chosen->state == WAITING && chosen->woken) {
        if (chosen->condition) pthread_cond_broadcast(chosen->condition);
        syscall(SYS_tgkill, syscall(SYS_getpid), chosen->tid, wake_signal());
        pthread_mutex_unlock(&lock);
        sched_yield();
        pthread_mutex_lock(&lock);
        if (chosen->state == WAITING && chosen->woken) {
            pthread_mutex_unlock(&lock);
            nap();
            pthread_mutex_lock(&lock);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Reads an order. */
static void take(struct order *order) {
    size_t have = 0;
    while (have < sizeof *order) {
        ssize_t got = recv(control, (char *)order + have, sizeof *order - have, 0);
        if (got < 0 && errno == EINTR) continue;
        /* Who scheduled it is gone. */
        if (got <= 0) _exit(137);
        have += (size_t)got;
    }
}

/* The only thread of the program makes the copy, within its wait: only the thread that forks lives on in a copy. */
static void copy(void) {
    copied = -1;
    struct slot *only = NULL;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].state == WAITING) only = &slots[i];
    if (only && threads() == 1) {
        atomic_store(&copying, WANTED);
        while (atomic_load(&copying) != MADE) {
            syscall(SYS_tgkill, syscall(SYS_getpid), only->tid, wake_signal());
            sched_yield();
            if (atomic_load(&copying) == WANTED) nap();
        }
        atomic_store(&copying, NOBODY);
    }
    struct report report = {0, (uint64_t)(int64_t)copied, NEVER, 0, 0};
    say(&report, sizeof report);
}

static void *listen_to_scheduler(void *none) {
    (void)none;
    for (;;) {
        struct order order;
        take(&order);
        if (order.kind == COPY) {
            memcpy(opened, order.opened, sizeof opened);
            copy();
            continue;
        }
        pthread_mutex_lock(&lock);
        atomic_store(&now, order.clock);
        run_until = order.until;
        quantum = order.quantum;
        atomic_store(&wrote, 0);
        pthread_mutex_unlock(&lock);
        wake();
    }
    return NULL;
}

/* The thread that listens has no slot: it is none of the program's. */
static void begin_to_listen(void) {
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    if (create(&thread, &attributes, listen_to_scheduler, NULL) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Connects to the scheduler; gives the descriptor, out of the way of numbers that programs count on. */
static int connected(void) {
    REAL(socket);
    int fd = real(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* What was started to be scheduled must not run by itself. */
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) _exit(137);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 700);
    if (high < 0) return fd;
    close(fd);
    return high;
}

/* In a copy: opens what is its own. */
static void separate(void) {
    static const int modes[] = {O_RDONLY, O_WRONLY, O_WRONLY | O_APPEND};
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)scheduler, (int)opened[i]);
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, modes[i], 0);
        if (fd < 0 || dup2(fd, i) < 0) _exit(137);
        close(fd);
    }
    int old = control;
    control = connected();
    close(old);
    mine->tid = own_tid();
    begin_to_listen();
}

/* Ends a wait; or, where a copy is wanted, makes it. The thread waits within the shim then and holds nothing. */
static void on_signal(int number) {
    (void)number;
    int wanted = WANTED, error = errno;
    if (!mine || !atomic_compare_exchange_strong(&copying, &wanted, MAKING)) return;
    /* A sibling: its parent is who started this process, which waits for both. */
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) {
        atomic_store(&copying, NOBODY);
        separate();
    } else {
        copied = child;
        atomic_store(&copying, MADE);
    }
    errno = error;
}

static uint64_t number_of(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void limit(int resource, uint64_t most) {
    struct rlimit limits = {most, most};
    setrlimit(resource, &limits);
}

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {
    const char *path = getenv("DEMI_SHIM_SOCKET");
    if (!path) return;
    /* Where things lie in memory decides the order of some hash tables. */
    int present = personality(0xffffffff);
    if (argc > 0 && present >= 0 && !(present & ADDR_NO_RANDOMIZE) && personality((unsigned long)present | ADDR_NO_RANDOMIZE) >= 0) {
        /* Nothing that the scheduler has open, but the first three. */
#ifdef SYS_close_range
        syscall(SYS_close_range, 3, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
#endif
        execve("/proc/self/exe", argv, environment);
    }
    if (strlen(path) >= sizeof address.sun_path) _exit(137);
    strcpy(address.sun_path, path);
    scheduler = getppid();
    int fd = connected();
    unsetenv("DEMI_SHIM_SOCKET");
    unsetenv("LD_PRELOAD");
    seed = number_of("DEMI_SHIM_SEED");
    atomic_store(&now, number_of("DEMI_SHIM_CLOCK"));
    unsetenv("DEMI_SHIM_CLOCK");
    uint64_t memory = number_of("DEMI_SHIM_MEMORY");
    unsetenv("DEMI_SHIM_SEED");
    unsetenv("DEMI_SHIM_MEMORY");
    if (memory) limit(RLIMIT_DATA, memory);
    limit(RLIMIT_CORE, 0);
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        /* One processor: which of two threads goes first is then decided by their waits. */
        uint64_t which = number_of("DEMI_SHIM_CPU");
        int count = CPU_COUNT(&all), want = count ? (int)(which % (uint64_t)count) : 0;
        CPU_ZERO(&one);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &all) && want-- == 0) CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    unsetenv("DEMI_SHIM_CPU");
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(wake_signal(), &action, NULL);
    pthread_key_create(&leaving, left);
    create = (__typeof__(pthread_create) *)dlsym(RTLD_NEXT, "pthread_create");
    mine = taken(own_tid());
    control = fd;
    begin_to_listen();
}

/* ---- clocks ---- */

static struct timespec timespec_of(uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / SECOND), (long)(nanoseconds % SECOND)};
    return time;
}

static uint64_t nanoseconds_of(const struct timespec *time) {
    if (time->tv_sec < 0) return 0;
    if ((uint64_t)time->tv_sec > NEVER / SECOND / 2) return NEVER;
    return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
}

static uint64_t later(uint64_t duration) {
    uint64_t sum = atomic_load(&now) + duration;
    return sum < duration ? NEVER : sum;
}

/* A point in time of one of the clocks, as nanoseconds since the start. */
static uint64_t point(const struct timespec *time) {
    uint64_t absolute = nanoseconds_of(time);
    if (absolute == NEVER) return NEVER;
    if (absolute >= REALTIME / 2) return absolute > REALTIME ? absolute - REALTIME : 0;
    return absolute > MONOTONIC ? absolute - MONOTONIC : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    REAL(clock_gettime);
    if (!active()) return real(clock, time);
    uint64_t base = 0;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI: base = REALTIME; break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: base = MONOTONIC; break;
    default: break;
    }
    *time = timespec_of(base + atomic_load(&now));
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    REAL(gettimeofday);
    if (!active()) return real(time, zone);
    uint64_t at = REALTIME + atomic_load(&now);
    time->tv_sec = (time_t)(at / SECOND);
    time->tv_usec = (suseconds_t)(at % SECOND / 1000);
    return 0;
}

time_t time(time_t *out) {
    REAL(time);
    if (!active()) return real(out);
    time_t at = (time_t)((REALTIME + atomic_load(&now)) / SECOND);
    if (out) *out = at;
    return at;
}

clock_t clock(void) {
    REAL(clock);
    return active() ? (clock_t)(atomic_load(&now) / 1000) : real();
}

clock_t times(struct tms *out) {
    REAL(times);
    if (!active()) return real(out);
    if (out) memset(out, 0, sizeof *out);
    return (clock_t)((MONOTONIC + atomic_load(&now)) / (SECOND / 100));
}

/* ---- waits ---- */

/* Whether an empty poll is one of many: then the program counts as waiting. */
static int polls(void) {
    uint64_t at = atomic_load(&now);
    if (empty_at != at) {
        empty_at = at;
        empty = 0;
    }
    return ++empty >= EMPTY;
}

static void busy(void) { empty = 0; }

static void sleep_until(uint64_t deadline, int flags) {
    REAL(ppoll);
    if (goes_on(deadline, flags)) return;
    park(deadline, flags, NULL);
    while (!is_woken()) real(NULL, 0, NULL, NULL);
    unpark();
}

static void sleep_for(uint64_t duration) {
    if (duration > 0) sleep_until(later(duration), 0);
    else if (polls()) sleep_until(NEVER, POLLER);
}

int nanosleep(const struct timespec *wanted, struct timespec *rest) {
    REAL(nanosleep);
    if (!active()) return real(wanted, rest);
    sleep_for(nanoseconds_of(wanted));
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *rest) {
    REAL(clock_nanosleep);
    if (!active()) return real(clock, flags, wanted, rest);
    if (!(flags & TIMER_ABSTIME)) sleep_for(nanoseconds_of(wanted));
    else if (point(wanted) > atomic_load(&now)) sleep_until(point(wanted), 0);
    else if (polls()) sleep_until(NEVER, POLLER);
    return 0;
}

int usleep(useconds_t wanted) {
    REAL(usleep);
    if (!active()) return real(wanted);
    sleep_for((uint64_t)wanted * 1000);
    return 0;
}

unsigned int sleep(unsigned int seconds) {
    REAL(sleep);
    if (!active()) return real(seconds);
    sleep_for((uint64_t)seconds * SECOND);
    return 0;
}

static int has_input(const struct pollfd *fds, nfds_t count) {
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].fd == 0 && (fds[i].events & POLLIN)) return READER;
    return 0;
}

/* A poll; the duration is NEVER where it has no end. */
static int poll_for(struct pollfd *fds, nfds_t count, uint64_t duration) {
    REAL(ppoll);
    struct timespec none = {0, 0};
    int ready = real(fds, count, &none, NULL);
    if (ready != 0) {
        busy();
        return ready;
    }
    int flags = has_input(fds, count);
    uint64_t deadline = NEVER;
    if (duration == 0) {
        if (!polls()) return 0;
        flags |= POLLER;
    } else if (duration != NEVER) {
        deadline = later(duration);
    }
    if (goes_on(deadline, flags)) return 0;
    park(deadline, flags, NULL);
    do ready = real(fds, count, NULL, NULL);
    while (ready < 0 && errno == EINTR && !is_woken());
    int woken = unpark();
    if (ready > 0) busy();
    return ready < 0 && woken ? 0 : ready;
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    REAL(poll);
    if (!active()) return real(fds, count, timeout);
    return poll_for(fds, count, timeout < 0 ? NEVER : (uint64_t)timeout * 1000000);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t length) {
    (void)length;
    return poll(fds, count, timeout);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    REAL(ppoll);
    if (!active()) return real(fds, count, timeout, mask);
    return poll_for(fds, count, timeout ? nanoseconds_of(timeout) : NEVER);
}

static int select_for(int count, fd_set *read, fd_set *write, fd_set *except, uint64_t duration) {
    REAL(pselect);
    fd_set none;
    FD_ZERO(&none);
    fd_set r = read ? *read : none, w = write ? *write : none, e = except ? *except : none;
    struct timespec zero = {0, 0};
    int flags = read && count > 0 && FD_ISSET(0, read) ? READER : 0;
    int ready = real(count, &r, &w, &e, &zero, NULL);
    if (ready == 0) {
        uint64_t deadline = NEVER;
        int waits = 1;
        if (duration == 0) {
            waits = polls();
            flags |= POLLER;
        } else if (duration != NEVER) {
            deadline = later(duration);
        }
        if (waits && goes_on(deadline, flags)) {
            r = w = e = none;
        } else if (waits) {
            park(deadline, flags, NULL);
            do {
                r = read ? *read : none, w = write ? *write : none, e = except ? *except : none;
                ready = real(count, &r, &w, &e, NULL, NULL);
            } while (ready < 0 && errno == EINTR && !is_woken());
            int woken = unpark();
            if (ready < 0 && woken) {
                ready = 0;
                r = w = e = none;
            }
        }
    }
    if (ready > 0) busy();
    if (ready < 0) return ready;
    if (read) *read = r;
    if (write) *write = w;
    if (except) *except = e;
    return ready;
}

int select(int count, fd_set *restrict read, fd_set *restrict write, fd_set *restrict except, struct timeval *restrict timeout) {
    REAL(select);
    if (!active()) return real(count, read, write, except, timeout);
    uint64_t duration = timeout ? (uint64_t)timeout->tv_sec * SECOND + (uint64_t)timeout->tv_usec * 1000 : NEVER;
    return select_for(count, read, write, except, duration);
}

int pselect(int count, fd_set *restrict read, fd_set *restrict write, fd_set *restrict except, const struct timespec *restrict timeout,
            const sigset_t *restrict mask) {
    REAL(pselect);
    if (!active()) return real(count, read, write, except, timeout, mask);
    return select_for(count, read, write, except, timeout ? nanoseconds_of(timeout) : NEVER);
}

static int epoll_for(int epoll, struct epoll_event *events, int most, uint64_t duration) {
    REAL(epoll_pwait);
    int ready = real(epoll, events, most, 0, NULL);
    if (ready != 0) {
        busy();
        return ready;
    }
    /* Which descriptors it watches is not known here; standard input may be one of them. */
    int flags = READER;
    uint64_t deadline = NEVER;
    if (duration == 0) {
        if (!polls()) return 0;
        flags |= POLLER;
    } else if (duration != NEVER) {
        deadline = later(duration);
    }
    if (goes_on(deadline, flags)) return 0;
    park(deadline, flags, NULL);
    do ready = real(epoll, events, most, -1, NULL);
    while (ready < 0 && errno == EINTR && !is_woken());
    int woken = unpark();
    if (ready > 0) busy();
    return ready < 0 && woken ? 0 : ready;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    REAL(epoll_wait);
    if (!active()) return real(epoll, events, most, timeout);
    return epoll_for(epoll, events, most, timeout < 0 ? NEVER : (uint64_t)timeout * 1000000);
}

int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    REAL(epoll_pwait);
    if (!active()) return real(epoll, events, most, timeout, mask);
    return epoll_for(epoll, events, most, timeout < 0 ? NEVER : (uint64_t)timeout * 1000000);
}

int epoll_pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask) {
    (void)mask;
    REAL(epoll_pwait);
    if (!active()) return real(epoll, events, most, timeout ? (int)(nanoseconds_of(timeout) / 1000000) : -1, mask);
    return epoll_for(epoll, events, most, timeout ? nanoseconds_of(timeout) : NEVER);
}

/* Waits until standard input has something, unless it does not block. */
static void await_input(int fd) {
    if (fd != 0 || !active()) return;
    int flags = fcntl(0, F_GETFL);
    struct pollfd input = {0, POLLIN, 0};
    if (flags >= 0 && (flags & O_NONBLOCK)) poll_for(&input, 1, 0);
    else poll_for(&input, 1, NEVER);
}

ssize_t read(int fd, void *buffer, size_t length) {
    REAL(read);
    await_input(fd);
    return real(fd, buffer, length);
}

ssize_t __read_chk(int fd, void *buffer, size_t length, size_t size) {
    (void)size;
    return read(fd, buffer, length);
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    REAL(readv);
    await_input(fd);
    return real(fd, parts, count);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(write);
    if (fd == 1) atomic_store(&wrote, 1);
    return real(fd, bytes, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    if (fd == 1) atomic_store(&wrote, 1);
    return real(fd, parts, count);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    REAL(pthread_cond_wait);
    if (!active()) return real(condition, mutex);
    park(NEVER, 0, NULL);
    int result = real(condition, mutex);
    unpark();
    return result;
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    static __typeof__(pthread_cond_wait) *real;
    if (!real) real = (__typeof__(pthread_cond_wait) *)dlsym(RTLD_NEXT, "pthread_cond_wait");
    if (point(until) <= atomic_load(&now)) return ETIMEDOUT;
    park(point(until), 0, condition);
    int result = real(condition, mutex);
    int woken = unpark();
    return result == 0 && woken ? ETIMEDOUT : result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    REAL(pthread_cond_timedwait);
    return active() ? wait_condition(condition, mutex, until) : real(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    return active() ? wait_condition(condition, mutex, until) : real(condition, mutex, clock, until);
}

int sem_wait(sem_t *semaphore) {
    REAL(sem_wait);
    if (!active()) return real(semaphore);
    if (sem_trywait(semaphore) == 0) return 0;
    park(NEVER, 0, NULL);
    int result = real(semaphore);
    unpark();
    return result;
}

static int wait_semaphore(sem_t *semaphore, const struct timespec *until) {
    static __typeof__(sem_wait) *real;
    if (!real) real = (__typeof__(sem_wait) *)dlsym(RTLD_NEXT, "sem_wait");
    if (sem_trywait(semaphore) == 0) return 0;
    if (point(until) <= atomic_load(&now)) {
        if (polls()) sleep_until(NEVER, POLLER);
        errno = ETIMEDOUT;
        return -1;
    }
    park(point(until), 0, NULL);
    int result;
    do result = real(semaphore);
    while (result != 0 && errno == EINTR && !is_woken());
    int woken = unpark();
    if (result != 0 && woken) errno = ETIMEDOUT;
    return result;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    REAL(sem_timedwait);
    return active() ? wait_semaphore(semaphore, until) : real(semaphore, until);
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until) {
    static int (*real)(sem_t *, clockid_t, const struct timespec *);
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "sem_clockwait");
    return active() ? wait_semaphore(semaphore, until) : real(semaphore, clock, until);
}

int pthread_join(pthread_t thread, void **result) {
    REAL(pthread_join);
    if (!active()) return real(thread, result);
    park(NEVER, 0, NULL);
    int outcome = real(thread, result);
    unpark();
    return outcome;
}

/* ---- threads, processes, connections ---- */

struct beginning {
    void *(*routine)(void *);
    void *argument;
    struct slot *slot;
};

static void *begin_thread(void *argument) {
    struct beginning beginning = *(struct beginning *)argument;
    free(argument);
    mine = beginning.slot;
    if (mine) {
        mine->tid = own_tid();
        pthread_setspecific(leaving, mine);
    }
    return beginning.routine(beginning.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
    REAL(pthread_create);
    if (!active()) return real(thread, attributes, routine, argument);
    struct beginning *beginning = malloc(sizeof *beginning);
    if (!beginning) return EAGAIN;
    /* It counts from here on: nobody may say that all wait before it has begun. */
    pthread_mutex_lock(&lock);
    *beginning = (struct beginning){routine, argument, taken(0)};
    pthread_mutex_unlock(&lock);
    int result = real(thread, attributes, begin_thread, beginning);
    if (result != 0) {
        if (beginning->slot) beginning->slot->state = FREE;
        free(beginning);
    }
    return result;
}

pid_t fork(void) {
    REAL(fork);
    if (!active()) return real();
    refused |= FORKED;
    errno = EPERM;
    return -1;
}

pid_t vfork(void) { return fork(); }

int socket(int domain, int type, int protocol) {
    REAL(socket);
    if (!active() || domain == AF_UNIX) return real(domain, type, protocol);
    refused |= CONNECTED;
    errno = EPERM;
    return -1;
}

pid_t getpid(void) {
    REAL(getpid);
    return active() ? 4242 : real();
}

pid_t getppid(void) {
    REAL(getppid);
    return active() ? 4241 : real();
}

int gethostname(char *name, size_t length) {
    REAL(gethostname);
    if (!active()) return real(name, length);
    snprintf(name, length, "node");
    return 0;
}

/* ---- random numbers: splitmix64 ---- */

static void fill(void *buffer, size_t length) {
    unsigned char *out = buffer;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < length; i += 8) {
        uint64_t mixed = (seed += 0x9e3779b97f4a7c15ull);
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
        mixed ^= mixed >> 31;
        memcpy(out + i, &mixed, length - i < 8 ? length - i : 8);
    }
    pthread_mutex_unlock(&lock);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags) {
    REAL(getrandom);
    if (!active()) return real(buffer, length, flags);
    fill(buffer, length);
    return (ssize_t)length;
}

int getentropy(void *buffer, size_t length) {
    REAL(getentropy);
    if (!active()) return real(buffer, length);
    fill(buffer, length);
    return 0;
}

static int is_random(const char *path) { return strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0; }

/* A file of random numbers; more than a program reads. */
static int random_file(void) {
    int fd = memfd_create("random", MFD_CLOEXEC);
    if (fd < 0) return fd;
    char block[4096];
    for (int i = 0; i < 16; i++) {
        fill(block, sizeof block);
        if (write(fd, block, sizeof block) < 0) break;
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

#define OPEN(name)                                                 \
    int name(const char *path, int flags, ...) {                   \
        static int (*real)(const char *, int, ...);                \
        if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, #name); \
        if (active() && is_random(path)) return random_file();     \
        va_list rest;                                              \
        va_start(rest, flags);                                     \
        mode_t mode = va_arg(rest, mode_t);                        \
        va_end(rest);                                              \
        return real(path, flags, mode);                            \
    }
OPEN(open)
OPEN(open64)

/* What Rust's standard library and others call for futexes and random numbers. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "syscall");
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long), d = va_arg(rest, long), e = va_arg(rest, long),
         f = va_arg(rest, long);
    va_end(rest);
    if (active() && mine && number == SYS_getrandom) return getrandom((void *)a, (size_t)b, (unsigned)c);
    if (active() && mine && number == SYS_futex) {
        int operation = (int)b & ~(FUTEX_PRIVATE_FLAG_ | FUTEX_CLOCK_REALTIME_);
        if (operation == FUTEX_WAIT_ || operation == FUTEX_WAIT_BITSET_) {
            const struct timespec *until = (const struct timespec *)d;
            uint64_t deadline = NEVER;
            if (until) deadline = operation == FUTEX_WAIT_ ? later(nanoseconds_of(until)) : point(until);
            if (deadline <= atomic_load(&now)) {
                if (*(volatile uint32_t *)a != (uint32_t)c) {
                    errno = EAGAIN;
                    return -1;
                }
                errno = ETIMEDOUT;
                return -1;
            }
            park(deadline, 0, NULL);
            long result;
            do result = real(number, a, b, c, NULL, e, f);
            while (result < 0 && errno == EINTR && !is_woken());
            int woken = unpark();
            if (result < 0 && woken && errno == EINTR) errno = ETIMEDOUT;
            return result;
        }
    }
    return real(number, a, b, c, d, e, f);
}
