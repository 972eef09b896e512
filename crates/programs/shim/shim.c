/* Runs inside a program that is scheduled: its clock, its waits and its random numbers are the scheduler's.
 *
 * Calls of the kernel that wait, or that tell a program something which differs from run to run, are trapped by a filter (seccomp) wherever in the
 * process they are made, in the C library itself too, and are answered here. Questions about the time that the C library answers without the kernel
 * are taken over by name.
 *
 * One thread runs at a time. Who waits gives its turn to the next thread whose wait is over, in the order of their places. When there is none,
 * that is said on the control socket: the process is at rest. The scheduler then writes a line to standard input and says so, or sends a
 * new time. Nothing here waits for real time to pass, and nothing depends on which thread the kernel would have chosen. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define SECOND 1000000000ull
/* What the clocks show when a program starts, the first node's; others start a little later. */
#define REALTIME (1700000000ull * SECOND)
#define APART 1000003ull
#define MONOTONIC (1000ull * SECOND)
#define SLOTS 512
#define TIMERS 64
#define PAIRS 64
/* Descriptors of the program are below. */
#define HIGHEST 700
/* Bytes of stack on which the copy of a thread begins. */
#define SCRATCH 16384
/* How far behind a deadline the clock is set. */
#define BEHIND 1000ull
/* Waits of one length or shorter in a row after which a thread counts as one that looks again and again, by the clock. */
#define NAPS 32
/* Such a wait may take this part of the time longer that went by without a word. It may anywhere: a machine can be busy. A program that looks a
 * thousand times a second for a minute is as good as still, and is asked some hundred and fifty times. */
#define LATE 16
/* Standard input that was found empty has nothing until the scheduler says so, and is not asked for this many polls. It is asked now and then, because the
 * program may have put something else in its place. */
#define UNASKED 16
/* How far the clock goes on with each line that comes. */
#define READING 1000ull
/* Empty polls in a row after which a program that polls counts as waiting. Event loops poll once for each round of what goes on at once. */
#define EMPTY 64
/* The same, where the last such round had nothing in it but polls: the program is at rest, and only the time has changed. Who polls more often in one
 * round of its loop comes to the rest of it a little later. */
#define STILL 2
/* Questions about the time without a wait after which the clock goes on with each: a program may wait by asking. */
#define ASKED 100000
/* The same where each question is a trap. */
#define ASKED_OUTSIDE 10000
/* Kibibytes of memory that programs are told they use. */
#define MAXRSS 65536
/* Go's runtime has a thread that looks after the others, and sleeps this long at most in between. It looks so often without any time going by. */
#define SHORT 10000000ull
#define LOOKS 8
/* Numbers of processes and threads as programs see them. */
#define PARENT 4241
#define PID 4242
#define LIVES 64

enum { FREE, RUNNING, WAITING, OUTSIDE };
enum { POLLER = 2, FORKED = 4, CONNECTED = 8, CROWDED = 16, REPLACED = 32, UNTRAPPED = 64, TIMED = 128, TRIED = 256 };
/* What a thread waits for, besides its time. */
enum { NOTHING, TURN, FUTEX, POLL, SELECT, EPOLL, END, NAP };

struct slot {
    int state;
    pid_t tid;
    pthread_t thread;
    /* In which order threads began to wait. */
    uint64_t since;
    uint64_t deadline;
    /* When it began to wait. */
    uint64_t from;
    /* How long the longest of its last waits was to take, and how many of about that length or shorter there were in a row. */
    uint64_t nap;
    int naps;
    int flags;
    int awaits;
    /* Its wait is over: whatever it waited for has come. */
    int woken;
    /* Signals that it is to get when its turn comes, and those that it lets nobody send it: bits, as the kernel has them. */
    uint64_t pending, blocked;
    _Atomic uint32_t turn;
    _Atomic uint32_t *futex;
    uint32_t bits;
    struct pollfd *fds;
    uint64_t count;
    struct pollfd one;
    fd_set *sets[3];
    struct slot *other;
    /* The number by which the C library knows the thread: in a copy the kernel has another. */
    pid_t known;
    /* Where its copy goes on, once that is known; and what the kernel knows of the thread. */
    void *context[5];
    _Atomic uint32_t parked;
    void *pointer, *robust;
    size_t robust_length;
    int *cleared;
    uint64_t mask;
    stack_t stack;
    /* It is Go's own: what it waits for is nothing that the program waits for. */
    int aside;
    /* Of a guest's thread: where it begins, with its own thread-local memory, and what the guest wants cleared at its end. */
    long registers[17];
    uintptr_t outside;
    _Atomic uint32_t *at_end;
};

/* A timer of the program: it counts into a descriptor, or sends a signal. */
struct timer {
    int used, descriptor, signal;
    clockid_t clock;
    uint64_t next, interval;
};

/* What is said on the control socket; the scheduler reads it in this layout. */
struct report {
    uint64_t number, clock, earliest;
    uint32_t flags, threads;
};

/* What the scheduler says. GO: the time is now this, and the program may go on by itself until then, unless it writes something. Each of its empty
 * polls takes that long. COPY: the process makes a copy of itself, which opens as its standard input, output and error what the scheduler has open
 * under these numbers. LOOK: there is something new to read. PASS: the thread whose turn it is sleeps in the kernel; the others go on. KILL: the
 * process is killed once it has written so many times (in the place of the clock), to its output or its files. */
enum { GO, COPY, LOOK, PASS, KILL };
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
/* What the clock of the day shows when the program starts, and the number of its process. Two nodes are two programs beside each other: neither is the same. */
static uint64_t begun_at = REALTIME;
static pid_t shown_pid = PID;
static atomic_uint_fast64_t now;
static _Atomic uint32_t lock;
static struct slot slots[SLOTS];
/* Those from here on were never taken. */
static int slots_end;
static struct timer timers[TIMERS];
/* Whose turn it is. */
static struct slot *holder;
static int last;
static uint64_t reports, waits;
static uint64_t run_until, quantum;
/* When the clock was told to go on. */
static uint64_t went_on;
static atomic_int wrote;
static int refused;
static uint64_t seed;
static uint64_t asked;
/* Whether a thread did more than poll since polls last counted as waiting; and whether none did in the round before that. */
static int busy, still;
/* A thread that has given its turn for the last time, and that the kernel may not have ended yet. */
static _Atomic pid_t ending;
/* How many more times it writes before it is killed; 0 where it is not. */
static atomic_uint_fast64_t writes_left;
static _Atomic uint32_t copying;
/* Sockets that are connected with each other, within this process. */
static struct {
    uint64_t ends[2];
    int type;
} pairs[PAIRS];
static int pairs_made;
static uint64_t opened[3];
static pid_t copied, scheduler, own_pid;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static __typeof__(pthread_create) *create;

#define REAL(name)                                                  \
    static __typeof__(name) *real;                                  \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int active(void) { return control >= 0; }

/* What each thread has of its own. */
struct own {
    /* Where this lies; and where what belongs to the program lay when its last call was trapped. */
    struct own *here;
    uintptr_t outside;
    struct slot *slot;
    /* Whether its calls go to the kernel as they are. */
    int passing;
    /* The last signal that ended a wait. */
    int signalled;
    int empty;
    uint64_t empty_at;
};
static __thread struct own own_of_thread;
/* Whether the program is a guest: it is linked statically, and was loaded into the process by hand. Its threads know nothing of the C library that this
 * file uses, whose thread-local memory they find for a call by the register that programs leave alone. */
static int guest;
/* Whether it is written in Go, whose runtime calls the kernel without the C library. */
static int is_go;

static inline struct own *own(void) {
#if defined(__x86_64__)
    if (guest) {
        struct own *found;
        /* Other threads than a guest's have nothing there: it must not be read before the question. */
        __asm__ volatile("mov %%gs:0, %0" : "=r"(found));
        return found;
    }
#endif
    return &own_of_thread;
}
#define mine (own()->slot)
#define passing (own()->passing)
#define signalled (own()->signalled)
#define empty (own()->empty)
#define empty_at (own()->empty_at)

/* ---- the kernel, from a page that the filter lets through ---- */

#define GATE 0x100000000000ull
#define GATE_LENGTH 4096

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
__asm__(".text\n.globl demi_gate\n.hidden demi_gate\n.globl demi_gate_end\n.hidden demi_gate_end\n"
        "demi_gate:\n mov %rdi,%rax\n mov %rsi,%rdi\n mov %rdx,%rsi\n mov %rcx,%rdx\n mov %r8,%r10\n mov %r9,%r8\n mov 8(%rsp),%r9\n syscall\n ret\n"
        "demi_gate_end:\n");
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
__asm__(".text\n.globl demi_gate\n.hidden demi_gate\n.globl demi_gate_end\n.hidden demi_gate_end\n"
        "demi_gate:\n mov x8,x0\n mov x0,x1\n mov x1,x2\n mov x2,x3\n mov x3,x4\n mov x4,x5\n mov x5,x6\n svc #0\n ret\n"
        "demi_gate_end:\n");
#else
#error "no gate for this processor"
#endif
extern const char demi_gate[], demi_gate_end[];

/* As the kernel answers: a negative number is an error. */
static long raw(long number, long a, long b, long c, long d, long e, long f) {
    return ((long (*)(long, long, long, long, long, long, long))GATE)(number, a, b, c, d, e, f);
}
#define raw0(n) raw(n, 0, 0, 0, 0, 0, 0)
#define raw1(n, a) raw(n, (long)(a), 0, 0, 0, 0, 0)
#define raw2(n, a, b) raw(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define raw3(n, a, b, c) raw(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define raw4(n, a, b, c, d) raw(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define raw5(n, a, b, c, d, e) raw(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

static int open_gate(void) {
    void *page = mmap((void *)GATE, GATE_LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != (void *)GATE) return -1;
    memcpy(page, demi_gate, (size_t)(demi_gate_end - demi_gate));
    __builtin___clear_cache((char *)page, (char *)page + GATE_LENGTH);
    return mprotect(page, GATE_LENGTH, PROT_READ | PROT_EXEC);
}

static pid_t own_tid(void) { return (pid_t)raw0(SYS_gettid); }

/* ---- thread-local memory of guests ---- */

/* One for each slot, and one for the thread that listens. */
static struct own owns[SLOTS + 1];
/* The C library's thread-local memory. Threads of a guest share it: one of them runs at a time. */
static uintptr_t inside;

#if defined(__x86_64__)
#define SET_GS 0x1001
#define SET_FS 0x1002
#define GET_FS 0x1003
/* Whether the processor tells and changes these registers without the kernel. */
static int quick;

static uintptr_t thread_memory(void) {
    uintptr_t at = 0;
    if (quick) __asm__ volatile("rdfsbase %0" : "=r"(at));
    else raw2(SYS_arch_prctl, GET_FS, &at);
    return at;
}

static void set_thread_memory(uintptr_t at) {
    if (quick) __asm__ volatile("wrfsbase %0" : : "r"(at) : "memory");
    else raw2(SYS_arch_prctl, SET_FS, at);
}

/* Has a thread find what it has of its own here. */
static void is_own(struct own *own) {
    if (!guest) return;
    own->here = own;
    raw2(SYS_arch_prctl, SET_GS, own);
}
#else
static uintptr_t thread_memory(void) { return 0; }
static void set_thread_memory(uintptr_t at) { (void)at; }
static void is_own(struct own *own) { (void)own; }
#endif

/* Sends the thread itself a signal, whose handler belongs to the program. */
static long signal_here(long number, long a, long b, long c) {
    uintptr_t before = 0;
    if (guest) {
        before = thread_memory();
        set_thread_memory(own()->outside);
    }
    long result = raw3(number, a, b, c);
    if (guest) set_thread_memory(before);
    return result;
}

static void await_word(_Atomic uint32_t *word, uint32_t value) { raw4(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, NULL); }
static void wake_word(_Atomic uint32_t *word) { raw3(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1); }

/* 0 is free, 1 held, 2 held and waited for. */
static void take_lock(void) {
    uint32_t seen = 0;
    if (atomic_compare_exchange_strong(&lock, &seen, 1)) return;
    while (atomic_exchange(&lock, 2) != 0) await_word(&lock, 2);
}

static void free_lock(void) {
    if (atomic_exchange(&lock, 0) == 2) wake_word(&lock);
}

static void say(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        long written = raw(SYS_sendto, control, (long)at, (long)length, MSG_NOSIGNAL, 0, 0);
        if (written == -EINTR) continue;
        if (written < 0) raw1(SYS_exit_group, 137);
        at += written;
        length -= (size_t)written;
    }
}

/* ---- turns ---- */

static int is_aside(const struct slot *slot) { return slot->aside && (slot->awaits == NAP || slot->awaits == FUTEX); }

static uint64_t earliest(void) {
    uint64_t first = NEVER;
    for (int i = 0; i < slots_end; i++)
        if (slots[i].state == WAITING && slots[i].deadline < first && !is_aside(&slots[i])) first = slots[i].deadline;
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].used && timers[i].next < first) first = timers[i].next;
    return first;
}

/* Whether a thread looks again and again, each time after a short while. */
static int naps(const struct slot *slot, uint64_t late) { return slot->naps >= NAPS && slot->nap <= late; }

/* The time that is next, where the first wait ends at `first`. Waits of those that only look again may end late, but no other wait does. */
static uint64_t next_time(uint64_t at, uint64_t first) {
    uint64_t late = (at - went_on) / LATE, next = (first > at ? first : at) + BEHIND, then = next + late;
    for (int i = 0; i < slots_end; i++) {
        const struct slot *slot = &slots[i];
        if (slot->state == WAITING && slot->deadline < then && !naps(slot, late) && !is_aside(slot)) then = slot->deadline + BEHIND;
    }
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].used && timers[i].next < then) then = timers[i].next + BEHIND;
    return then > next ? (then < run_until ? then : run_until) : next;
}

/* The time at which a thread that polls does so again. */
static uint64_t next_poll(const struct slot *slot, uint64_t at) {
    uint64_t late = (at - went_on) / LATE, next = slot->from + (late > quantum ? late : quantum);
    if (next <= at) next = at + BEHIND;
    return next > run_until && slot->from + quantum <= run_until && at < run_until ? run_until : next;
}

/* The first time at which one of those that poll does so again. */
static uint64_t first_poll(uint64_t at) {
    uint64_t first = NEVER;
    for (int i = 0; i < slots_end; i++)
        if (slots[i].state == WAITING && slots[i].flags & POLLER) {
            uint64_t next = next_poll(&slots[i], at);
            if (next < first) first = next;
        }
    return first;
}

/* Those that poll do so again whose time has come. */
static void wake_pollers(uint64_t at, uint64_t now_is) {
    for (int i = 0; i < slots_end; i++)
        if (slots[i].state == WAITING && slots[i].flags & POLLER && next_poll(&slots[i], at) <= now_is) slots[i].woken = 1;
}

/* Says that all threads wait. The lock is held. */
static void announce(void) {
    struct report report = {++reports, atomic_load(&now), earliest(), (uint32_t)refused, 0};
    for (int i = 0; i < slots_end; i++) {
        if (slots[i].state == FREE) continue;
        report.threads++;
        report.flags |= (uint32_t)slots[i].flags;
    }
    say(&report, sizeof report);
}

/* Says at once that it did what it may not: it may end before it waits again. */
static void refuse(int flag) {
    take_lock();
    if (!(refused & flag)) {
        refused |= flag;
        /* The number of the last report: this says nothing of rest. */
        struct report report = {reports, atomic_load(&now), NEVER, (uint32_t)refused, 1};
        say(&report, sizeof report);
    }
    free_lock();
}

static struct slot *taken(pid_t tid) {
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].state == FREE) {
            memset(&slots[i], 0, sizeof slots[i]);
            slots[i].state = RUNNING;
            slots[i].tid = slots[i].known = tid;
            slots[i].deadline = NEVER;
            if (slots_end <= i) slots_end = i + 1;
            return &slots[i];
        }
    }
    refused |= CROWDED;
    return NULL;
}

static uint64_t bit_of(int signal) { return signal > 0 && signal <= 64 ? 1ull << (signal - 1) : 0; }

/* How many more polls of standard input alone need no answer of the kernel: it is empty. */
static atomic_uint unasked;

/* Whether a poll waits for something to read from standard input and for nothing else, and there is nothing. */
static int is_empty_input(int only_input) {
    unsigned left = atomic_load(&unasked);
    return only_input && left > 0 && atomic_compare_exchange_strong(&unasked, &left, left - 1);
}

/* Notes the answer of the kernel to such a poll. */
static long input_is(int only_input, long ready) {
    if (only_input && ready == 0) atomic_store(&unasked, UNASKED);
    return ready;
}

static long poll_now(struct pollfd *fds, uint64_t count) {
    struct timespec none = {0, 0};
    int only_input = count == 1 && fds->fd == 0 && fds->events == POLLIN;
    if (is_empty_input(only_input)) {
        fds->revents = 0;
        return 0;
    }
    return input_is(only_input, raw5(SYS_ppoll, fds, count, &none, NULL, 0));
}

static long select_now(long count, fd_set *sets[3], fd_set copies[3]) {
    struct timespec none = {0, 0};
    size_t length = ((size_t)count + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
    if (length > sizeof(fd_set)) return -EINVAL;
    long at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = sets[i] ? (long)&copies[i] : 0;
        if (sets[i]) memcpy(&copies[i], sets[i], length);
    }
    /* Libraries give empty sets where they have none. */
    int only_input = count == 1 && sets[0] && FD_ISSET(0, &copies[0]) && !(sets[1] && FD_ISSET(0, &copies[1])) && !(sets[2] && FD_ISSET(0, &copies[2]));
    if (is_empty_input(only_input)) {
        for (int i = 0; i < 3; i++)
            if (sets[i]) memset(&copies[i], 0, length);
        return 0;
    }
    return input_is(only_input, raw(SYS_pselect6, count, at[0], at[1], at[2], (long)&none, 0));
}

/* Whether what it waits for has come. */
static int is_ready(struct slot *slot) {
    if (slot->state != WAITING) return 0;
    if (slot->woken || slot->pending & ~slot->blocked || slot->deadline <= atomic_load(&now)) return 1;
    fd_set copies[3];
    switch (slot->awaits) {
    case TURN: return 1;
    case POLL: return poll_now(slot->fds, slot->count) != 0;
    case SELECT: return select_now((long)slot->count, slot->sets, copies) != 0;
    case EPOLL: return poll_now(&slot->one, 1) != 0;
    case END: return slot->other->state == FREE;
    default: return 0;
    }
}

/* Whether the processor's own clock is kept from the program: then a fault may be for this file. */
static int is_watched;

/* Signals that this file needs, which nobody blocks. */
static uint64_t always_open(void) { return bit_of(SIGSYS) | (is_watched ? bit_of(SIGSEGV) : 0); }

/* The thread that a signal to the whole process is for: the first that takes it, as the kernel prefers. */
static struct slot *receiver(int signal) {
    for (int i = 0; i < slots_end; i++)
        if (slots[i].state != FREE && !(slots[i].blocked & bit_of(signal))) return &slots[i];
    return NULL;
}

/* Timers whose time has come. */
static void ring(void) {
    uint64_t at = atomic_load(&now);
    for (int i = 0; i < TIMERS; i++) {
        struct timer *timer = &timers[i];
        if (!timer->used || timer->next > at) continue;
        uint64_t times = 1;
        if (timer->interval) {
            times += (at - timer->next) / timer->interval;
            timer->next += times * timer->interval;
        } else {
            timer->next = NEVER;
        }
        if (timer->descriptor >= 0) {
            raw3(SYS_write, timer->descriptor, &times, sizeof times);
        } else {
            struct slot *slot = receiver(timer->signal);
            if (slot && slot->state == WAITING) slot->pending |= bit_of(timer->signal);
            else raw2(SYS_kill, own_pid, timer->signal);
        }
    }
}

/* How often Go's own thread has looked since another had a turn. */
static int looks;

/* Lets Go's own thread look after the others, which all wait. Whether it may. */
static int wake_napper(void) {
    if (looks >= LOOKS) return 0;
    for (int i = 0; i < slots_end; i++) {
        if (slots[i].state != WAITING || slots[i].awaits != NAP) continue;
        slots[i].woken = 1;
        looks++;
        return 1;
    }
    return 0;
}

/* Gives the turn to the next thread that is ready; lets the clock go on if it may. The lock is held, and nobody has the turn. */
static void turn_over(void) {
    for (;;) {
        ring();
        for (int n = 1; n <= slots_end; n++) {
            int i = (last + n) % slots_end;
            if (!is_ready(&slots[i])) continue;
            last = i;
            holder = &slots[i];
            if (holder->awaits != NAP) looks = 0;
            holder->state = RUNNING;
            atomic_store(&holder->turn, 1);
            /* Who gives the turn to itself has not begun to wait. */
            if (holder != mine) wake_word(&holder->turn);
            return;
        }
        if (wake_napper()) continue;
        uint64_t at = atomic_load(&now), next = earliest(), poll = first_poll(at);
        if (next != NEVER) next = next_time(at, next);
        /* Who polls is not kept waiting by others that wait for their time. */
        if (poll < next) next = poll;
        if (run_until <= at || next > run_until || atomic_load(&wrote)) {
            run_until = 0;
            announce();
            return;
        }
        atomic_store(&now, next);
        wake_pollers(at, next);
    }
}

static void copy_here(void);
static int sockets_are_own(void);

/* Waits until the thread that ended before has left nothing for the kernel to do: its stack is used again or not, and that must not depend on how
 * fast it ends. */
static void await_ended(void) {
    pid_t tid = atomic_load(&ending);
    while (tid && raw3(SYS_tgkill, own_pid, tid, 0) == 0) raw0(SYS_sched_yield);
    if (tid) atomic_store(&ending, 0);
}

/* Waits to be woken. A copy of the thread goes on here: nothing that is deeper on its stack is used again. */
static __attribute__((noinline)) void park(struct slot *slot) {
    if (!slot->pointer) {
        slot->pointer = __builtin_thread_pointer();
        raw3(SYS_get_robust_list, 0, &slot->robust, &slot->robust_length);
        if (raw2(SYS_prctl, PR_GET_TID_ADDRESS, &slot->cleared) != 0) slot->cleared = NULL;
    }
    raw2(SYS_sigaltstack, NULL, &slot->stack);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &slot->mask, 8);
    if (__builtin_setjmp(slot->context) == 0) atomic_store(&slot->parked, 1);
    await_word(&slot->turn, 0);
    atomic_store(&slot->parked, 0);
}

/* Waits for its turn. The lock is not held. */
static void await_turn(struct slot *slot) {
    for (;;) {
        if (atomic_exchange(&slot->turn, 0)) {
            await_ended();
            return;
        }
        if (atomic_load(&copying) == WANTED && slot == &slots[0]) copy_here();
        park(slot);
    }
}

/* Gets the signals that were sent to it while it waited. Whether one of them ends its wait. */
static int receive(struct slot *slot) {
    uint64_t pending = slot->pending, open = pending & ~slot->blocked;
    slot->pending = 0;
    for (int signal = 1; pending; signal++, pending >>= 1) {
        if (!(pending & 1)) continue;
        if (open & bit_of(signal)) signalled = signal;
        signal_here(SYS_tgkill, own_pid, slot->tid, signal);
    }
    return open != 0;
}

/* A thread that had no turn, since it slept in the kernel or is none of those that were begun here, takes part again. */
static int enter(void) {
    if (mine && mine->state == RUNNING) return 1;
    take_lock();
    if (!mine) mine = taken(own_tid());
    struct slot *slot = mine;
    if (!slot) {
        free_lock();
        return 0;
    }
    if (!holder) {
        slot->state = RUNNING;
        holder = slot;
        free_lock();
        await_ended();
        return 1;
    }
    if (holder == slot) {
        free_lock();
        return 1;
    }
    slot->state = WAITING;
    slot->awaits = TURN;
    slot->deadline = NEVER;
    slot->flags = 0;
    free_lock();
    await_turn(slot);
    slot->awaits = NOTHING;
    receive(slot);
    return 1;
}

enum { CAME = 1, TIME = 2, SIGNALLED = 4 };

/* Waits for what stands in its slot; the lock is held. Says what ended the wait. */
static int wait_here(uint64_t deadline, int flags) {
    struct slot *slot = mine;
    uint64_t at = atomic_load(&now), nap = deadline == NEVER || deadline < at ? 0 : deadline - at;
    int again = nap && slot->nap && nap <= slot->nap + slot->nap / 8;
    slot->naps = again ? slot->naps + 1 : 0;
    if (!again || nap > slot->nap) slot->nap = nap;
    if (flags & POLLER) {
        still = !busy;
        busy = 0;
    }
    slot->deadline = deadline;
    slot->from = at;
    slot->flags = flags;
    slot->woken = 0;
    slot->since = ++waits;
    slot->state = WAITING;
    asked = 0;
    holder = NULL;
    turn_over();
    free_lock();
    await_turn(slot);
    int why = (slot->woken ? CAME : 0) | (slot->deadline <= atomic_load(&now) ? TIME : 0);
    slot->deadline = NEVER;
    slot->flags = 0;
    slot->awaits = NOTHING;
    return why | (receive(slot) ? SIGNALLED : 0);
}

static long wake_on_word(_Atomic uint32_t *word, long most, uint32_t bits);

/* Ends a thread. It has its turn until it does nothing more: what libraries and the C library do when a thread ends takes locks that others take too. */
static void end_here(long code) {
    if (mine && enter()) {
        struct slot *slot = mine;
        if (slot->at_end) {
            atomic_store(slot->at_end, 0);
            wake_on_word(slot->at_end, 1, ~0u);
        }
        take_lock();
        mine = NULL;
        /* The first thread stays in the kernel's books as long as the process. */
        atomic_store(&ending, slot->tid == own_pid ? 0 : slot->tid);
        slot->state = FREE;
        holder = NULL;
        turn_over();
        free_lock();
    }
    for (;;) raw1(SYS_exit, code);
}

/* ---- what the scheduler says ---- */

/* Reads an order. */
static void take(struct order *order) {
    size_t have = 0;
    while (have < sizeof *order) {
        long got = raw(SYS_recvfrom, control, (long)((char *)order + have), (long)(sizeof *order - have), 0, 0, 0);
        if (got == -EINTR) continue;
        /* Who scheduled it is gone. */
        if (got <= 0) raw1(SYS_exit_group, 137);
        have += (size_t)got;
    }
}

/* Whether all threads but the first wait where a copy of them can go on; the first makes the copy. */
static int all_parked(void) {
    if (slots[0].state != WAITING) return 0;
    for (int i = 1; i < slots_end; i++) {
        if (slots[i].state == FREE) continue;
        if (slots[i].state != WAITING || !atomic_load(&slots[i].parked) || (!slots[i].cleared && !guest)) return 0;
    }
    return 1;
}

/* The first thread makes the copy, within its wait: only the thread that forks lives on in a copy, and the others are begun there anew. */
static void copy(void) {
    copied = -1;
    int ready = 0;
    /* They have said that they wait, and are about to. */
    for (int n = 0; n < 100000 && !ready; n++) {
        take_lock();
        ready = all_parked();
        free_lock();
        if (!ready) raw0(SYS_sched_yield);
    }
    if (ready && sockets_are_own()) {
        atomic_store(&copying, WANTED);
        while (atomic_load(&copying) != MADE) {
            /* A wake between its question and its wait is lost, so it is sent until the copy is made. */
            wake_word(&slots[0].turn);
            if (atomic_load(&copying) == WANTED) raw0(SYS_sched_yield);
        }
        atomic_store(&copying, NOBODY);
    }
    struct report report = {0, (uint64_t)(int64_t)copied, NEVER, 0, 0};
    say(&report, sizeof report);
}

/* The thread pointer of the thread that listens, which a copy goes on with. */
static void *listener;

static void *listen_to_scheduler(void *none) {
    (void)none;
    is_own(&owns[SLOTS]);
    listener = __builtin_thread_pointer();
    for (;;) {
        struct order order;
        take(&order);
        if (order.kind == COPY) {
            memcpy(opened, order.opened, sizeof opened);
            copy();
            continue;
        }
        if (order.kind == KILL) {
            atomic_store(&writes_left, order.clock);
            continue;
        }
        take_lock();
        if (order.kind == PASS) {
            /* It came to rest by itself meanwhile, and has said so. */
            if (!holder) {
                free_lock();
                continue;
            }
            holder->state = OUTSIDE;
            holder = NULL;
        }
        if (order.kind == GO) {
            uint64_t at = went_on = atomic_load(&now);
            atomic_store(&now, order.clock);
            run_until = order.until;
            quantum = order.quantum;
            atomic_store(&wrote, 0);
            wake_pollers(at, order.clock);
        } else {
            /* Two lines never come at the same time: programs make identifiers of it. */
            if (order.kind == LOOK) {
                atomic_fetch_add(&now, READING);
                atomic_store(&unasked, 0);
            }
            run_until = 0;
        }
        if (!holder) turn_over();
        free_lock();
    }
    return NULL;
}

/* The thread that listens has no slot: it is none of the program's. */
static void begin_to_listen(void) {
    sigset_t every, before;
    sigfillset(&every);
    /* The C library's own calls in the new thread are trapped too. */
    sigdelset(&every, SIGSYS);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &every, &before, 8);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    passing++;
    if (create(&thread, &attributes, listen_to_scheduler, NULL) == 0) pthread_detach(thread);
    passing--;
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
}

/* Connects to the scheduler; gives the descriptor, out of the way of numbers that programs count on. */
static int connected(void) {
    int fd = (int)raw3(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* What was started to be scheduled must not run by itself. */
    if (fd < 0 || raw3(SYS_connect, fd, &address, sizeof address) != 0) raw1(SYS_exit_group, 137);
    int high = (int)raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGHEST);
    if (high < 0) return fd;
    raw1(SYS_close, fd);
    return high;
}

static int write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        long written = raw3(SYS_write, fd, bytes, length);
        if (written == -EINTR) continue;
        if (written <= 0) return -1;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* A line of what the kernel tells of a descriptor, after its name. */
static const char *line_of(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at ? at + strlen(name) : NULL;
}

/* What the kernel tells of a descriptor. */
static int told_of(int fd, char *text, size_t length) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int in = (int)raw4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (in < 0) return -1;
    size_t have = 0;
    long got;
    while (have < length - 1 && (got = raw3(SYS_read, in, text + have, length - 1 - have)) > 0) have += (size_t)got;
    raw1(SYS_close, in);
    text[have] = 0;
    return 0;
}

/* Puts a new descriptor in the place of another. */
static void replace(int fd, int new, long flags) {
    if (new < 0 || raw3(SYS_dup3, new, fd, flags & O_CLOEXEC) < 0) raw1(SYS_exit_group, 137);
    raw1(SYS_close, new);
}

static long fstat_now(long fd, struct stat *about) { return raw2(SYS_fstat, fd, about); }
static int is_folder(const struct stat *about) { return (about->st_mode & S_IFMT) == S_IFDIR; }
static int is_file(const struct stat *about) { return (about->st_mode & S_IFMT) == S_IFREG; }

/* The descriptors of the program that are open, in their order, from 3 on. To ask for each of the others would take longer than all else in a copy. */
struct open_ones {
    int count, all[HIGHEST];
};

static void look_for_open(struct open_ones *open) {
    char block[1024] __attribute__((aligned(8)));
    uint8_t found[HIGHEST] = {0};
    open->count = 0;
    int in = (int)raw4(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    /* Without /proc all that there may be are looked at. */
    if (in < 0) memset(found, 1, sizeof found);
    long length;
    while (in >= 0 && (length = raw3(SYS_getdents64, in, block, sizeof block)) > 0) {
        for (long at = 0; at < length;) {
            const struct dirent64 *entry = (const struct dirent64 *)(block + at);
            at += entry->d_reclen;
            int fd = 0, digits = 0;
            for (const char *c = entry->d_name; *c >= '0' && *c <= '9' && fd < HIGHEST; c++, digits++) fd = fd * 10 + (*c - '0');
            if (digits && fd < HIGHEST) found[fd] = 1;
        }
    }
    if (in >= 0) {
        raw1(SYS_close, in);
        found[in < HIGHEST ? in : 0] = 0;
    }
    for (int fd = 3; fd < HIGHEST; fd++)
        if (found[fd]) open->all[open->count++] = fd;
}

/* The other end of a socket, and what kind of socket it is; -1 where that is not known, or there are several. */
static int other_end(const struct open_ones *open, int fd, int *type) {
    struct stat about, one;
    if (fstat_now(fd, &about) != 0) return -1;
    for (int i = 0; i < PAIRS; i++) {
        if (!pairs[i].ends[0] || (pairs[i].ends[0] != about.st_ino && pairs[i].ends[1] != about.st_ino)) continue;
        uint64_t wanted = pairs[i].ends[0] == about.st_ino ? pairs[i].ends[1] : pairs[i].ends[0];
        int found = -1;
        for (int at = 0; at < open->count; at++) {
            int other = open->all[at];
            if (other == fd || fstat_now(other, &one) != 0 || (one.st_mode & S_IFMT) != S_IFSOCK) continue;
            if (one.st_ino == about.st_ino || (one.st_ino == wanted && found >= 0)) return -1;
            if (one.st_ino == wanted) found = other;
        }
        *type = pairs[i].type;
        return found;
    }
    return -1;
}

/* Whether all sockets are connected within the process, and none holds more than a copy can be given. */
static int sockets_are_own(void) {
    struct stat about;
    struct open_ones open;
    look_for_open(&open);
    for (int at = 0; at < open.count; at++) {
        int fd = open.all[at], type, unread = 0;
        if (fstat_now(fd, &about) != 0 || (about.st_mode & S_IFMT) != S_IFSOCK || fd == control) continue;
        if (other_end(&open, fd, &type) < 0 || raw3(SYS_ioctl, fd, FIONREAD, &unread) != 0 || unread > 4096) return 0;
        if (type != SOCK_STREAM && unread > 0) return 0;
    }
    return 1;
}

/* In a copy: sockets of its own, which hold what these hold. */
static void own_sockets(const struct open_ones *open) {
    struct stat about;
    uint8_t done[HIGHEST] = {0};
    for (int at = 0; at < open->count; at++) {
        int fd = open->all[at], type, new[2], both[2];
        if (done[fd] || fd == control || fstat_now(fd, &about) != 0 || (about.st_mode & S_IFMT) != S_IFSOCK) continue;
        both[0] = fd;
        both[1] = other_end(open, fd, &type);
        if (both[1] < 0 || raw4(SYS_socketpair, AF_UNIX, type, 0, new) != 0) raw1(SYS_exit_group, 137);
        for (int i = 0; i < 2; i++) {
            char held[4096];
            long length = raw(SYS_recvfrom, both[i], (long)held, sizeof held, MSG_PEEK | MSG_DONTWAIT, 0, 0);
            /* What one end holds was written to the other. */
            if (length > 0 && write_all(new[1 - i], held, (size_t)length) != 0) raw1(SYS_exit_group, 137);
        }
        for (int i = 0; i < 2; i++) {
            long flags = raw2(SYS_fcntl, both[i], F_GETFL);
            raw3(SYS_fcntl, new[i], F_SETFL, flags & O_NONBLOCK);
            replace(both[i], new[i], raw2(SYS_fcntl, both[i], F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
            done[both[i]] = 1;
            if (fstat_now(both[i], &about) == 0) pairs[pairs_made % PAIRS].ends[i] = about.st_ino;
        }
        pairs[pairs_made++ % PAIRS].type = type;
    }
}

static long pair_here(long domain, long type, long protocol, int *ends) {
    struct stat one, other;
    long result = raw4(SYS_socketpair, domain, type, protocol, ends);
    if (result == 0 && domain == AF_UNIX && fstat_now(ends[0], &one) == 0 && fstat_now(ends[1], &other) == 0) {
        take_lock();
        int place = pairs_made++ % PAIRS;
        pairs[place].ends[0] = one.st_ino;
        pairs[place].ends[1] = other.st_ino;
        pairs[place].type = (int)type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
        free_lock();
    }
    return result;
}

enum { COUNTER, PIPE, READ, WATCH, KINDS };

/* In a copy: counters, pipes, files that are only read and lists of what is waited for that are its own. What they hold is what they held, and files are
 * read on where they were. The lists come last: they name the others. */
static void own_descriptors(const struct open_ones *open, int kind) {
    static const char *const names[KINDS] = {"anon_inode:[eventfd]", "pipe:[", "/", "anon_inode:[eventpoll]"};
    static char text[65536];
    for (int place = 0; place < open->count; place++) {
        int fd = open->all[place];
        char path[64], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        long length = raw4(SYS_readlinkat, AT_FDCWD, path, target, sizeof target - 1);
        if (length <= 0) continue;
        target[length] = 0;
        if (strncmp(target, names[kind], strlen(names[kind])) != 0 || told_of(fd, text, sizeof text) != 0) continue;
        const char *said = line_of(text, "flags:");
        long flags = said ? strtol(said, NULL, 8) : 0;
        if (kind == COUNTER) {
            const char *count = line_of(text, "eventfd-count:"), *single = line_of(text, "eventfd-semaphore:");
            uint64_t value = count ? strtoull(count, NULL, 16) : 0;
            int semaphore = single && strtol(single, NULL, 10) == 1 ? EFD_SEMAPHORE : 0;
            int new = (int)raw2(SYS_eventfd2, 0, (flags & O_NONBLOCK ? EFD_NONBLOCK : 0) | semaphore);
            if (value) raw3(SYS_write, new, &value, sizeof value);
            replace(fd, new, flags);
        } else if (kind == PIPE) {
            /* The other end is looked for from here on: each pair is replaced once. */
            if (flags & O_ACCMODE) continue;
            for (int next = 0; next < open->count; next++) {
                int other = open->all[next];
                char end[64];
                snprintf(path, sizeof path, "/proc/self/fd/%d", other);
                long count = raw4(SYS_readlinkat, AT_FDCWD, path, end, sizeof end - 1);
                if (other == fd || count != length || memcmp(end, target, (size_t)length) != 0) continue;
                long other_flags = raw2(SYS_fcntl, other, F_GETFL);
                int closes = (int)raw2(SYS_fcntl, other, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;
                int ends[2], unread = 0;
                if (raw2(SYS_pipe2, ends, 0) != 0) raw1(SYS_exit_group, 137);
                raw3(SYS_ioctl, fd, FIONREAD, &unread);
                if (unread > 0 && raw4(SYS_tee, fd, ends[1], unread, SPLICE_F_NONBLOCK) != unread) raw1(SYS_exit_group, 137);
                raw3(SYS_fcntl, ends[0], F_SETFL, flags & O_NONBLOCK);
                raw3(SYS_fcntl, ends[1], F_SETFL, other_flags & O_NONBLOCK);
                replace(fd, ends[0], flags);
                replace(other, ends[1], closes);
                break;
            }
        } else if (kind == READ) {
            struct stat about;
            const char *place = line_of(text, "pos:");
            if (flags & O_ACCMODE || fstat_now(fd, &about) != 0 || !is_file(&about)) continue;
            int new = (int)raw4(SYS_openat, AT_FDCWD, path, O_RDONLY | (flags & O_NONBLOCK), 0);
            if (new >= 0) raw3(SYS_lseek, new, place ? strtoll(place, NULL, 10) : 0, SEEK_SET);
            replace(fd, new, flags);
        } else {
            int new = (int)raw1(SYS_epoll_create1, 0);
            for (const char *at = text; new >= 0 && (at = line_of(at, "tfd:"));) {
                char *end;
                int watched = (int)strtol(at, &end, 10);
                const char *events = line_of(end, "events:"), *data = line_of(end, "data:");
                struct epoll_event event = {events ? (uint32_t)strtoul(events, NULL, 16) : 0, {.u64 = data ? strtoull(data, NULL, 16) : 0}};
                raw4(SYS_epoll_ctl, new, EPOLL_CTL_ADD, watched, &event);
            }
            replace(fd, new, flags);
        }
    }
}

/* Stacks on which the threads of a copy begin. A copy takes no memory of the program's: where that is must be as in a process that was started. */
static char scratch[SLOTS][SCRATCH] __attribute__((aligned(16)));

static int listens_on(void *none) {
    /* The C library's own calls are trapped too. */
    sigset_t every;
    sigfillset(&every);
    sigdelset(&every, SIGSYS);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, 8);
    listen_to_scheduler(none);
    return 0;
}

/* Where the copy of a thread begins: on a stack of its own, as that thread. */
static int revived(void *at) {
    struct slot *slot = at;
    is_own(&owns[slot - slots]);
    raw2(SYS_set_robust_list, slot->robust, slot->robust_length);
    if (!(slot->stack.ss_flags & SS_DISABLE)) {
        slot->stack.ss_flags &= ~SS_ONSTACK;
        raw2(SYS_sigaltstack, &slot->stack, NULL);
    }
    slot->tid = own_tid();
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &slot->mask, NULL, 8);
    __builtin_longjmp(slot->context, 1);
}

#if defined(__x86_64__)
/* A new thread begins here, on a stack with a function and what it is given. */
__asm__(".text\n.globl demi_born\n.hidden demi_born\n"
        "demi_born:\n pop %rax\n pop %rdi\n xor %ebp,%ebp\n call *%rax\n ud2\n");
extern const char demi_born[];

/* Begins a thread; in a guest the C library's own call would be taken for the guest's. */
static long begin_here(int (*routine)(void *), char *stack, long flags, void *argument, void *memory, void *cleared) {
    if (!guest) return clone(routine, stack, (int)flags, argument, NULL, memory, cleared);
    /* The stack is even where the function is called. */
    long *top = (long *)stack - 5;
    top[0] = (long)demi_born;
    top[1] = (long)routine;
    top[2] = (long)argument;
    if (!cleared) flags &= ~CLONE_CHILD_CLEARTID;
    return raw5(SYS_clone, flags, top, 0, cleared, memory);
}
#else
static long begin_here(int (*routine)(void *), char *stack, long flags, void *argument, void *memory, void *cleared) {
    return clone(routine, stack, (int)flags, argument, NULL, memory, cleared);
}
#endif

/* In a copy: begins the other threads where they were, and that which listens. */
static void revive(void) {
    static const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_CHILD_CLEARTID;
    /* The thread that makes the copy has the first slot, so its stack is free. */
    if (begin_here(listens_on, scratch[0] + SCRATCH, flags & ~CLONE_CHILD_CLEARTID, NULL, listener, NULL) < 0) raw1(SYS_exit_group, 137);
    for (int i = 1; i < slots_end; i++) {
        if (slots[i].state == FREE) continue;
        if (begin_here(revived, scratch[i] + SCRATCH, flags, &slots[i], slots[i].pointer, slots[i].cleared) < 0) raw1(SYS_exit_group, 137);
    }
}

/* In a copy: opens what is its own. */
static void separate(void) {
    own_pid = (pid_t)raw0(SYS_getpid);
    mine->tid = own_tid();
    static const int modes[] = {O_RDONLY, O_WRONLY, O_WRONLY | O_APPEND};
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)scheduler, (int)opened[i]);
        int fd = (int)raw4(SYS_openat, AT_FDCWD, path, modes[i], 0);
        if (fd < 0 || raw3(SYS_dup3, fd, i, 0) < 0) raw1(SYS_exit_group, 137);
        raw1(SYS_close, fd);
    }
    static struct open_ones open;
    look_for_open(&open);
    own_sockets(&open);
    for (int kind = 0; kind < KINDS; kind++) own_descriptors(&open, kind);
    int old = control;
    control = connected();
    raw1(SYS_close, old);
    revive();
    /* All of it is there. */
    struct report report = {reports, atomic_load(&now), NEVER, 0, 0};
    say(&report, sizeof report);
}

static void copy_here(void) {
    uint32_t wanted = WANTED;
    if (!atomic_compare_exchange_strong(&copying, &wanted, MAKING)) return;
    /* A sibling: its parent is who started this process, which waits for both. */
    pid_t child = (pid_t)raw5(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        atomic_store(&copying, NOBODY);
        separate();
    } else {
        copied = child;
        atomic_store(&copying, MADE);
    }
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

static uint64_t base_of(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI: return begun_at;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME_ALARM:
    case CLOCK_BOOTTIME: return MONOTONIC;
    default: return 0;
    }
}

/* A point in time of a clock, as nanoseconds since the start. */
static uint64_t point(clockid_t clock, const struct timespec *time) {
    uint64_t absolute = nanoseconds_of(time), base = base_of(clock);
    return absolute == NEVER ? NEVER : absolute > base ? absolute - base : 0;
}

/* The time, for a program that asks. One that asks and asks waits: then each answer takes a microsecond. */
static uint64_t told_time(void) {
    /* Go's collector works for a share of the time that went by, and for none where none did. */
    if (mine && is_go && asked <= ASKED_OUTSIDE) return ++asked, atomic_fetch_add(&now, 1) + 1;
    if (mine && ++asked > (guest || is_go ? ASKED_OUTSIDE : ASKED)) return atomic_fetch_add(&now, 1000) + 1000;
    return atomic_load(&now);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    REAL(clock_gettime);
    if (!active()) return real(clock, time);
    *time = timespec_of(base_of(clock) + told_time());
    return 0;
}

int timespec_get(struct timespec *time, int base) {
    REAL(timespec_get);
    if (!active() || base != TIME_UTC) return real(time, base);
    *time = timespec_of(begun_at + told_time());
    return base;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    REAL(gettimeofday);
    if (!active()) return real(time, zone);
    uint64_t at = begun_at + told_time();
    time->tv_sec = (time_t)(at / SECOND);
    time->tv_usec = (suseconds_t)(at % SECOND / 1000);
    return 0;
}

time_t time(time_t *out) {
    REAL(time);
    if (!active()) return real(out);
    time_t at = (time_t)((begun_at + told_time()) / SECOND);
    if (out) *out = at;
    return at;
}

clock_t clock(void) {
    REAL(clock);
    return active() ? (clock_t)(told_time() / 1000) : real();
}

clock_t times(struct tms *out) {
    REAL(times);
    if (!active()) return real(out);
    if (out) memset(out, 0, sizeof *out);
    return (clock_t)((MONOTONIC + told_time()) / (SECOND / 100));
}

/* ---- waits ---- */

/* Whether an empty poll is one of many: then the program counts as waiting. */
static int polls(void) {
    uint64_t at = atomic_load(&now);
    if (empty_at != at) {
        empty_at = at;
        empty = 0;
    }
    return ++empty >= (still ? STILL : EMPTY);
}

/* A thread does more than poll. */
static void works(void) {
    busy = 1;
    still = 0;
}

/* Something has come. */
static void came(void) {
    empty = 0;
    works();
}

/* Whether a call goes on by itself after a signal. */
static int restarts(int signal) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } known = {0};
    return raw4(SYS_rt_sigaction, signal, NULL, &known, 8) == 0 && known.flags & SA_RESTART;
}

static long sleep_until(uint64_t deadline, int flags) {
    take_lock();
    mine->awaits = NOTHING;
    return wait_here(deadline, flags) & SIGNALLED ? -EINTR : 0;
}

static long sleep_for(uint64_t duration) {
    if (is_go && duration > 0 && duration <= SHORT) {
        /* Programs in Go wait otherwise: this is the runtime. */
        take_lock();
        mine->aside = 1;
        mine->awaits = NAP;
        return wait_here(later(duration), 0) & SIGNALLED ? -EINTR : 0;
    }
    if (duration > 0) return sleep_until(later(duration), 0);
    return polls() ? sleep_until(NEVER, POLLER) : 0;
}

/* A poll; the duration is NEVER where it has no end. */
static long poll_for(struct pollfd *fds, uint64_t count, uint64_t duration) {
    uint64_t deadline = duration == NEVER || duration == 0 ? NEVER : later(duration);
    for (;;) {
        long ready = poll_now(fds, count);
        if (ready != 0) {
            came();
            return ready;
        }
        if (duration == 0 && !polls()) return 0;
        take_lock();
        mine->awaits = POLL;
        mine->fds = fds;
        mine->count = count;
        int why = wait_here(deadline, duration == 0 ? POLLER : 0);
        if (why & SIGNALLED) return -EINTR;
        ready = poll_now(fds, count);
        if (ready != 0 || duration == 0 || why & TIME) {
            if (ready > 0) came();
            return ready;
        }
    }
}

static long select_for(long count, fd_set *sets[3], uint64_t duration) {
    fd_set copies[3];
    uint64_t deadline = duration == NEVER || duration == 0 ? NEVER : later(duration);
    size_t length = ((size_t)count + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
    long ready;
    for (;;) {
        ready = select_now(count, sets, copies);
        if (ready != 0) break;
        if (duration == 0 && !polls()) break;
        take_lock();
        mine->awaits = SELECT;
        mine->count = (uint64_t)count;
        for (int i = 0; i < 3; i++) mine->sets[i] = sets[i];
        int why = wait_here(deadline, duration == 0 ? POLLER : 0);
        if (why & SIGNALLED) return -EINTR;
        ready = select_now(count, sets, copies);
        if (ready != 0 || duration == 0 || why & TIME) break;
    }
    if (ready < 0) return ready;
    if (ready > 0) came();
    for (int i = 0; i < 3; i++)
        if (sets[i]) memcpy(sets[i], &copies[i], length);
    return ready;
}

static long epoll_for(long epoll, struct epoll_event *events, long most, uint64_t duration) {
    uint64_t deadline = duration == NEVER || duration == 0 ? NEVER : later(duration);
    for (;;) {
        long ready = raw(SYS_epoll_pwait, epoll, (long)events, most, 0, 0, 8);
        if (ready != 0) {
            came();
            return ready;
        }
        if (duration == 0 && !polls()) return 0;
        take_lock();
        mine->awaits = EPOLL;
        mine->one = (struct pollfd){(int)epoll, POLLIN, 0};
        int why = wait_here(deadline, duration == 0 ? POLLER : 0);
        if (why & SIGNALLED) return -EINTR;
        ready = raw(SYS_epoll_pwait, epoll, (long)events, most, 0, 0, 8);
        if (ready != 0 || duration == 0 || why & TIME) {
            if (ready > 0) came();
            return ready;
        }
    }
}

/* Waits until a descriptor has something, unless it does not block. */
static long await_input(int fd) {
    struct pollfd *one = &mine->one;
    for (;;) {
        *one = (struct pollfd){fd, POLLIN, 0};
        if (poll_now(one, 1) != 0) {
            came();
            return 0;
        }
        long flags = raw2(SYS_fcntl, fd, F_GETFL);
        if (flags >= 0 && flags & O_NONBLOCK) {
            /* Who asks again and again polls. */
            if (fd == 0 && polls()) poll_for(one, 1, 0);
            return 0;
        }
        take_lock();
        mine->awaits = POLL;
        mine->fds = one;
        mine->count = 1;
        if (wait_here(NEVER, 0) & SIGNALLED && !restarts(signalled)) return -EINTR;
    }
}

static long wait_on_word(_Atomic uint32_t *word, uint32_t value, uint64_t deadline, uint32_t bits) {
    take_lock();
    if (atomic_load(word) != value) {
        free_lock();
        return -EAGAIN;
    }
    if (deadline <= atomic_load(&now)) {
        free_lock();
        if (polls()) sleep_until(NEVER, POLLER);
        return -ETIMEDOUT;
    }
    mine->awaits = FUTEX;
    mine->futex = word;
    mine->bits = bits;
    int why = wait_here(deadline, 0);
    if (why & CAME) return 0;
    if (why & SIGNALLED) return -EINTR;
    return -ETIMEDOUT;
}

/* The thread that waits longest for a word. */
static struct slot *longest(_Atomic uint32_t *word, uint32_t bits) {
    struct slot *first = NULL;
    for (int i = 0; i < slots_end; i++) {
        struct slot *slot = &slots[i];
        if (slot->state == WAITING && slot->awaits == FUTEX && slot->futex == word && !slot->woken && slot->bits & bits &&
            (!first || slot->since < first->since))
            first = slot;
    }
    return first;
}

static long wake_on_word(_Atomic uint32_t *word, long most, uint32_t bits) {
    long count = 0;
    struct slot *slot;
    take_lock();
    while (count < most && (slot = longest(word, bits))) {
        slot->woken = 1;
        count++;
    }
    free_lock();
    return count;
}

static long move_to_word(_Atomic uint32_t *word, long wakes, long most, _Atomic uint32_t *other, int compares, uint32_t value) {
    take_lock();
    if (compares && atomic_load(word) != value) {
        free_lock();
        return -EAGAIN;
    }
    long count = 0;
    struct slot *slot;
    while (count < wakes && (slot = longest(word, ~0u))) {
        slot->woken = 1;
        count++;
    }
    for (long moved = 0; moved < most && (slot = longest(word, ~0u)); moved++, count++) slot->futex = other;
    free_lock();
    return count;
}

static long futex(long a, long b, long c, long d, long e, long f) {
    _Atomic uint32_t *word = (_Atomic uint32_t *)a;
    switch (b & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return wait_on_word(word, (uint32_t)c, d ? later(nanoseconds_of((struct timespec *)d)) : NEVER, ~0u);
    case FUTEX_WAIT_BITSET: {
        clockid_t clock = b & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        return wait_on_word(word, (uint32_t)c, d ? point(clock, (struct timespec *)d) : NEVER, (uint32_t)f);
    }
    case FUTEX_WAKE: return wake_on_word(word, (int)c, ~0u);
    case FUTEX_WAKE_BITSET: return wake_on_word(word, (int)c, (uint32_t)f);
    case FUTEX_REQUEUE: return move_to_word(word, (int)c, (int)d, (_Atomic uint32_t *)e, 0, 0);
    case FUTEX_CMP_REQUEUE: return move_to_word(word, (int)c, (int)d, (_Atomic uint32_t *)e, 1, (uint32_t)f);
    default: return raw(SYS_futex, a, b, c, d, e, f);
    }
}

/* ---- timers ---- */

static struct timer *timer_at(long number) { return number >= 0 && number < TIMERS && timers[number].used ? &timers[number] : NULL; }

static struct timer *timer_of(int descriptor) {
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].used && timers[i].descriptor == descriptor) return &timers[i];
    return NULL;
}

static struct timer *new_timer(clockid_t clock, int descriptor, int signal) {
    /* The first is that of setitimer and alarm. */
    for (int i = 1; i < TIMERS; i++) {
        if (timers[i].used) continue;
        timers[i] = (struct timer){1, descriptor, signal, clock, NEVER, 0};
        return &timers[i];
    }
    return NULL;
}

static void show_timer(const struct timer *timer, struct itimerspec *out) {
    uint64_t at = atomic_load(&now);
    out->it_interval = timespec_of(timer->interval);
    out->it_value = timespec_of(timer->next == NEVER ? 0 : timer->next > at ? timer->next - at : 1);
}

static void set_timer(struct timer *timer, uint64_t value, int absolute, uint64_t interval) {
    timer->interval = interval;
    timer->next = value == 0 ? NEVER : absolute ? value : later(value);
}

static void set_timer_spec(struct timer *timer, const struct itimerspec *wanted, int absolute) {
    uint64_t value = nanoseconds_of(&wanted->it_value);
    if (value && absolute) {
        value = point(timer->clock, &wanted->it_value);
        if (value == 0) value = 1;
    }
    set_timer(timer, value, absolute, nanoseconds_of(&wanted->it_interval));
}

static uint64_t of_timeval(const struct timeval *time) { return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_usec * 1000; }

static struct timeval timeval_of(uint64_t nanoseconds) {
    struct timeval time = {(time_t)(nanoseconds / SECOND), (suseconds_t)(nanoseconds % SECOND / 1000)};
    return time;
}

static long set_interval(long which, const struct itimerval *wanted, struct itimerval *old) {
    if (which != ITIMER_REAL) return 0; /* Time of the processor does not pass. */
    struct timer *timer = &timers[0];
    if (!timer->used) *timer = (struct timer){1, -1, SIGALRM, CLOCK_REALTIME, NEVER, 0};
    if (old) {
        struct itimerspec shown;
        show_timer(timer, &shown);
        old->it_interval = timeval_of(nanoseconds_of(&shown.it_interval));
        old->it_value = timeval_of(nanoseconds_of(&shown.it_value));
    }
    if (wanted) set_timer(timer, of_timeval(&wanted->it_value), 0, of_timeval(&wanted->it_interval));
    return 0;
}

static long timer_descriptor(long clock, long flags) {
    long fd = raw2(SYS_eventfd2, 0, (flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0) | (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0));
    /* One that was closed had this number. */
    struct timer *old = fd >= 0 ? timer_of((int)fd) : NULL;
    if (old) old->used = 0;
    if (fd >= 0 && !new_timer((clockid_t)clock, (int)fd, 0)) {
        raw1(SYS_close, fd);
        return -EMFILE;
    }
    return fd;
}

static long set_descriptor(long fd, long flags, const struct itimerspec *wanted, struct itimerspec *old) {
    struct timer *timer = timer_of((int)fd);
    if (!timer) return -EINVAL;
    if (old) show_timer(timer, old);
    set_timer_spec(timer, wanted, (int)(flags & TFD_TIMER_ABSTIME));
    /* What it counted before is forgotten. */
    struct pollfd one = {(int)fd, POLLIN, 0};
    uint64_t count;
    if (poll_now(&one, 1) > 0) raw3(SYS_read, fd, &count, sizeof count);
    return 0;
}

/* ---- random numbers: splitmix64 ---- */

static void fill(void *buffer, size_t length) {
    unsigned char *out = buffer;
    take_lock();
    for (size_t i = 0; i < length; i += 8) {
        uint64_t mixed = (seed += 0x9e3779b97f4a7c15ull);
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
        mixed ^= mixed >> 31;
        memcpy(out + i, &mixed, length - i < 8 ? length - i : 8);
    }
    free_lock();
}

/* A file of random numbers, more than a program reads; or nothing. */
static long random_file(const char *path) {
    /* Where libuuid remembers its clock from run to run: without it, it takes random numbers. */
    if (strcmp(path, "/var/lib/libuuid/clock.txt") == 0) return -ENOENT;
    int is_id = strcmp(path, "/proc/sys/kernel/random/uuid") == 0 || strcmp(path, "/proc/sys/kernel/random/boot_id") == 0;
    if (!is_id && strcmp(path, "/dev/urandom") != 0 && strcmp(path, "/dev/random") != 0) return -1;
    long fd = raw2(SYS_memfd_create, "random", MFD_CLOEXEC);
    if (fd < 0) return fd;
    char block[4096];
    if (is_id) {
        unsigned char b[16];
        fill(b, sizeof b);
        b[6] = (b[6] & 15) | 64, b[8] = (b[8] & 63) | 128;
        int length = snprintf(block, sizeof block, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n", b[0], b[1], b[2], b[3],
                              b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
        raw3(SYS_write, fd, block, length);
    } else {
        for (int i = 0; i < 16; i++) {
            fill(block, sizeof block);
            if (raw3(SYS_write, fd, block, sizeof block) < 0) break;
        }
    }
    raw3(SYS_lseek, fd, 0, SEEK_SET);
    return fd;
}

/* ---- calls that were trapped ---- */

static struct slot *slot_of(long shown) {
    /* The C library knows the true number. */
    for (int i = 0; i < slots_end; i++)
        if (slots[i].state != FREE && slots[i].known == shown) return &slots[i];
    long place = shown - shown_pid;
    return place >= 0 && place < SLOTS && slots[place].state != FREE ? &slots[place] : NULL;
}

/* Whether the program does something of its own when it gets a signal. */
static int is_handled(int signal) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } known = {0};
    return bit_of(signal) && raw4(SYS_rt_sigaction, signal, NULL, &known, 8) == 0 && known.handler != SIG_DFL && known.handler != SIG_IGN;
}

/* Sends a signal to a thread. One that waits gets it when its turn comes: its handler would run beside the thread whose turn it is, and its wait
 * would go on. */
static long send_signal(struct slot *slot, pid_t tid, int signal) {
    take_lock();
    int waits_here = slot && slot->state == WAITING && is_handled(signal);
    if (waits_here) slot->pending |= bit_of(signal);
    free_lock();
    return waits_here ? 0 : signal_here(SYS_tgkill, own_pid, slot ? slot->tid : tid, signal);
}

static long send_to_all(int signal) {
    struct slot *slot = is_handled(signal) ? receiver(signal) : NULL;
    return slot ? send_signal(slot, slot->tid, signal) : signal_here(SYS_kill, own_pid, signal, 0);
}

/* Has other signals blocked while a thread waits, where the call says so. */
static uint64_t block(const uint64_t *wanted) {
    uint64_t before = mine->blocked;
    if (wanted) {
        mine->blocked = *wanted & ~always_open();
        raw4(SYS_rt_sigprocmask, SIG_SETMASK, &mine->blocked, NULL, 8);
    }
    return before;
}

static long unblock(const uint64_t *wanted, uint64_t before, long result) {
    mine->blocked = before;
    if (wanted) raw4(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
    return result;
}

/* ---- files that a loss of power leaves ---- */

/* The folder in which what was synced is kept; not there where files outlive everything. For each file: its content when it was last synced
 * (NUMBER.data), and a second name (NUMBER.hold), so that its number is not given to another. For each folder: its entries when it was last synced
 * (NUMBER.dir), each as its kind, its number, its name and a zero. */
static char kept_folder[PATH_MAX];


static void kept_path(char *path, size_t length, uint64_t number, const char *what) {
    snprintf(path, length, "%s/%llu.%s", kept_folder, (unsigned long long)number, what);
}

/* Has a file keep its number, whatever becomes of its names. */
static void hold(const char *name, uint64_t number) {
    char path[PATH_MAX + 64];
    kept_path(path, sizeof path, number, "hold");
    raw5(SYS_linkat, AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Keeps the content of a file as it is. */
static void keep_file(int fd) {
    struct stat about;
    char from[64], new[PATH_MAX + 64], path[PATH_MAX + 64], block[16384];
    if (fstat_now(fd, &about) != 0 || !is_file(&about)) return;
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    hold(from, about.st_ino);
    kept_path(new, sizeof new, about.st_ino, "new");
    kept_path(path, sizeof path, about.st_ino, "data");
    /* What is open for writing alone cannot be read. */
    int in = (int)raw4(SYS_openat, AT_FDCWD, from, O_RDONLY | O_CLOEXEC, 0);
    int out = (int)raw4(SYS_openat, AT_FDCWD, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    long length = 0;
    while (in >= 0 && out >= 0 && (length = raw3(SYS_read, in, block, sizeof block)) > 0)
        if (write_all(out, block, (size_t)length) != 0) break;
    if (in >= 0) raw1(SYS_close, in);
    if (out >= 0) raw1(SYS_close, out);
    if (in >= 0 && out >= 0 && length == 0) raw5(SYS_renameat2, AT_FDCWD, new, AT_FDCWD, path, 0);
}

/* Keeps the entries of a folder as they are; with `deep`, everything that is in it too. */
static void keep_folder(int fd, int deep) {
    struct stat about;
    char new[PATH_MAX + 64], path[PATH_MAX + 64], name[PATH_MAX], block[8192];
    if (fstat_now(fd, &about) != 0 || !is_folder(&about)) return;
    kept_path(new, sizeof new, about.st_ino, "new");
    kept_path(path, sizeof path, about.st_ino, "dir");
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int in = (int)raw4(SYS_openat, AT_FDCWD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int out = (int)raw4(SYS_openat, AT_FDCWD, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    long length = 0;
    while (in >= 0 && out >= 0 && (length = raw3(SYS_getdents64, in, block, sizeof block)) > 0) {
        for (long at = 0; at < length;) {
            const struct dirent64 *entry = (const struct dirent64 *)(block + at);
            at += entry->d_reclen;
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
            int inner = (int)raw4(SYS_openat, in, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
            struct stat one;
            if (inner < 0) continue;
            if (fstat_now(inner, &one) == 0 && (is_file(&one) || is_folder(&one))) {
                char told[NAME_MAX + 64];
                int count = snprintf(told, sizeof told, "%c %llu %s", is_folder(&one) ? 'd' : 'f', (unsigned long long)one.st_ino, entry->d_name);
                write_all(out, told, (size_t)count + 1);
                if (is_file(&one)) {
                    snprintf(name, sizeof name, "/proc/self/fd/%d", inner);
                    hold(name, one.st_ino);
                    if (deep) keep_file(inner);
                } else if (deep) {
                    keep_folder(inner, deep);
                }
            }
            raw1(SYS_close, inner);
        }
    }
    if (in >= 0) raw1(SYS_close, in);
    if (out >= 0) raw1(SYS_close, out);
    if (in >= 0 && out >= 0 && length == 0) raw5(SYS_renameat2, AT_FDCWD, new, AT_FDCWD, path, 0);
}

/* Keeps everything in the working folder, as the program found it. */
static void keep_all(const char *folder) {
    int fd = (int)raw4(SYS_openat, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return;
    keep_folder(fd, 1);
    raw1(SYS_close, fd);
}

static char work_folder[PATH_MAX];

static void keep_what_is_synced(long number, long fd) {
    if (number == SYS_sync || number == SYS_syncfs) {
        keep_all(work_folder);
    } else {
        keep_file((int)fd);
        if (number != SYS_write) keep_folder((int)fd, 0);
    }
}

#if defined(__x86_64__)
/* Bytes of a stack for what takes more than a guest's threads may have. One of them runs at a time. */
#define LARGE (1 << 20)
static char large[LARGE] __attribute__((aligned(16)));
extern void demi_with_room(void (*work)(long, long), long a, long b, char *stack);
__asm__(".text\n.globl demi_with_room\n.hidden demi_with_room\n"
        "demi_with_room:\n push %rbp\n mov %rsp,%rbp\n mov %rcx,%rsp\n mov %rdi,%rax\n mov %rsi,%rdi\n mov %rdx,%rsi\n call *%rax\n mov %rbp,%rsp\n pop %rbp\n ret\n");
#endif

/* Keeps what this call syncs; SYS_write stands for a file whose every write does. */
static void keep_here(long number, long fd) {
#if defined(__x86_64__)
    if (guest || is_go) {
        demi_with_room(keep_what_is_synced, number, fd, large + LARGE);
        return;
    }
#endif
    keep_what_is_synced(number, fd);
}

static long sync_here(long number, long fd) {
    long result = number == SYS_sync ? 0 : raw1(number, fd);
    if (result == 0 && kept_folder[0]) keep_here(number, fd);
    return result;
}

/* ---- writes ---- */

/* One more write to output or files was made: the last one where the process is to be killed. */
static void count_write(void) {
    uint64_t left = atomic_load(&writes_left);
    if (left == 0) return;
    atomic_store(&writes_left, left - 1);
    if (left == 1)
        for (;;) raw2(SYS_kill, own_pid, SIGKILL);
}

/* Notes a write that the scheduler gets, under whatever number the program has its standard output. */
static long write_here(long number, long a, long b, long c, long d, long e, long f) {
    struct stat one, other;
    long to = number == SYS_splice ? c : number == SYS_tee ? b : a;
    int known = fstat_now(to, &other) == 0;
    int told = to == 1 || (known && fstat_now(1, &one) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev);
    if (told) atomic_store(&wrote, 1);
    long result = raw(number, a, b, c, d, e, f);
    if (result < 0) return result;
    int to_file = known && is_file(&other) && !(fstat_now(2, &one) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev);
    if (to_file && kept_folder[0] && raw2(SYS_fcntl, to, F_GETFL) & O_DSYNC) keep_here(SYS_write, to);
    if (told || to_file) count_write();
    return result;
}

/* Who opens a file to write it anew changes it. */
static long opened_here(long fd, long flags) {
    struct stat about;
    if (fd >= 0 && flags & (O_CREAT | O_TRUNC) && fstat_now(fd, &about) == 0 && is_file(&about)) count_write();
    return fd;
}

/* A change of files that is no write. */
static long change_here(long number, long a, long b, long c, long d, long e, long f) {
    long result = raw(number, a, b, c, d, e, f);
    if (result >= 0) count_write();
    return result;
}

static long socket_for(long a, long b, long c) {
    if (a == AF_UNIX) return raw3(SYS_socket, a, b, c);
    /* Libraries ask a datagram socket for the addresses of the machine, and do without it. */
    refuse((b & 15) == SOCK_STREAM ? CONNECTED : TRIED);
    return -EPERM;
}

/* Changes the mask that holds once the handler returns. */
static long mask_signals(uint64_t *mask, long how, const uint64_t *wanted, uint64_t *old) {
    uint64_t before = *mask;
    if (wanted) {
        switch (how) {
        case SIG_BLOCK: *mask |= *wanted; break;
        case SIG_UNBLOCK: *mask &= ~*wanted; break;
        case SIG_SETMASK: *mask = *wanted; break;
        default: return -EINVAL;
        }
        *mask &= ~always_open();
    }
    if (old) *old = before;
    return 0;
}

/* What the program does when it reads or writes where there is nothing, in the kernel's layout. */
static struct {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
} of_fault;
static long on_action(long signal, long wanted, long old, long size) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } changed;
    if (signal == SIGSYS) return 0;
    if (signal == SIGSEGV && is_watched) {
        if (size != 8) return -EINVAL;
        if (old) memcpy((void *)old, &of_fault, sizeof of_fault);
        if (wanted) memcpy(&of_fault, (void *)wanted, sizeof of_fault);
        return 0;
    }
    if (!wanted || size != 8) return raw4(SYS_rt_sigaction, signal, wanted, old, size);
    memcpy(&changed, (void *)wanted, sizeof changed);
    changed.mask &= ~always_open();
    return raw4(SYS_rt_sigaction, signal, &changed, old, size);
}

/* The path of a guest. */
static char guest_path[PATH_MAX];

/* Where a link leads; the process of a guest is another program's. */
static long own_path(const char *link, char *buffer, long length, long result) {
    if (result < 0 || strcmp(link, "/proc/self/exe") != 0) return result;
    size_t own = strlen(guest_path);
    if (own > (size_t)length) own = (size_t)length;
    memcpy(buffer, guest_path, own);
    return (long)own;
}

/* Whether a call only waits, or asks for the time or for what has come. */
static int only_asks(long number) {
    switch (number) {
    case SYS_futex:
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_sched_yield:
    case SYS_clock_gettime:
    case SYS_gettimeofday:
    case SYS_getpid:
    case SYS_gettid:
    case SYS_rt_sigprocmask:
#ifdef SYS_poll
    case SYS_poll:
#endif
#ifdef SYS_select
    case SYS_select:
#endif
#ifdef SYS_epoll_wait
    case SYS_epoll_wait:
#endif
        return 1;
    default: return 0;
    }
}

/* Answers a call of a thread that has these signals blocked. */
static long answer(uint64_t *mask, long number, long a, long b, long c, long d, long e, long f) {
    if (mine) mine->blocked = *mask;
    if (!only_asks(number)) works();
    switch (number) {
    case SYS_rt_sigprocmask: return mask_signals(mask, a, (const uint64_t *)b, (uint64_t *)c);
    case SYS_rt_sigaction: return on_action(a, b, c, d);
    case SYS_getpid: return shown_pid;
    case SYS_getppid: return PARENT;
    case SYS_gettid: return mine ? shown_pid + (mine - slots) : shown_pid;
    case SYS_kill: return a == shown_pid || a == own_pid || a == 0 ? send_to_all((int)b) : -EPERM;
    case SYS_tkill: return send_signal(slot_of(a), (pid_t)a, (int)b);
    case SYS_tgkill: return send_signal(slot_of(b), (pid_t)b, (int)c);
    case SYS_exit: end_here(a); return 0;
    case SYS_getrandom: fill((void *)a, (size_t)b); return b;
    case SYS_socket: return socket_for(a, b, c);
    case SYS_socketpair: return pair_here(a, b, c, (int *)d);
    /* Daemons of the machine are no part of the program. */
    case SYS_connect: return -ECONNREFUSED;
    case SYS_execve:
    case SYS_execveat: refuse(REPLACED); return -EPERM;
    case SYS_clone: refuse(FORKED); return -EPERM;
#ifdef SYS_readlink
    case SYS_readlink: return own_path((const char *)a, (char *)b, c, raw3(number, a, b, c));
#endif
    case SYS_readlinkat: return own_path((const char *)b, (char *)c, d, raw4(number, a, b, c, d));
#ifdef SYS_fork
    case SYS_fork:
    case SYS_vfork: refuse(FORKED); return -EPERM;
#endif
#ifdef SYS_open
    case SYS_open: {
        long fd = random_file((const char *)a);
        return fd != -1 ? fd : opened_here(raw3(SYS_open, a, b, c), b);
    }
#endif
    case SYS_openat: {
        long fd = random_file((const char *)b);
        return fd != -1 ? fd : opened_here(raw4(SYS_openat, a, b, c, d), c);
    }
    case SYS_write:
    case SYS_writev:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2: return write_here(number, a, b, c, d, e, f);
    case SYS_ftruncate:
    case SYS_truncate:
    case SYS_fallocate:
    case SYS_unlinkat:
    case SYS_renameat2:
    case SYS_mkdirat:
    case SYS_linkat:
    case SYS_symlinkat:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
#ifdef SYS_rename
    case SYS_rename:
    case SYS_unlink:
    case SYS_rmdir:
    case SYS_mkdir:
    case SYS_link:
    case SYS_symlink:
#endif
        return change_here(number, a, b, c, d, e, f);
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs: {
        long result = sync_here(number, a);
        if (result >= 0) count_write();
        return result;
    }
    }
    if (passing || !enter()) return raw(number, a, b, c, d, e, f);
    switch (number) {
    case SYS_futex: return futex(a, b, c, d, e, f);
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg: {
        long error = (number == SYS_recvfrom && d & MSG_DONTWAIT) || (number == SYS_recvmsg && c & MSG_DONTWAIT) ? 0 : await_input((int)a);
        return error ? error : raw(number, a, b, c, d, e, f);
    }
#ifdef SYS_poll
    case SYS_poll: return poll_for((struct pollfd *)a, (uint64_t)b, (int)c < 0 ? NEVER : (uint64_t)c * 1000000);
#endif
    case SYS_ppoll: {
        uint64_t before = block((const uint64_t *)d);
        return unblock((const uint64_t *)d, before, poll_for((struct pollfd *)a, (uint64_t)b, c ? nanoseconds_of((struct timespec *)c) : NEVER));
    }
#ifdef SYS_select
    case SYS_select: {
        fd_set *sets[3] = {(fd_set *)b, (fd_set *)c, (fd_set *)d};
        return select_for(a, sets, e ? of_timeval((struct timeval *)e) : NEVER);
    }
#endif
    case SYS_pselect6: {
        fd_set *sets[3] = {(fd_set *)b, (fd_set *)c, (fd_set *)d};
        const uint64_t *wanted = f ? *(const uint64_t **)f : NULL;
        uint64_t before = block(wanted);
        return unblock(wanted, before, select_for(a, sets, e ? nanoseconds_of((struct timespec *)e) : NEVER));
    }
#ifdef SYS_epoll_wait
    case SYS_epoll_wait: return epoll_for(a, (struct epoll_event *)b, c, (int)d < 0 ? NEVER : (uint64_t)d * 1000000);
#endif
    case SYS_epoll_pwait: {
        uint64_t before = block((const uint64_t *)e);
        return unblock((const uint64_t *)e, before, epoll_for(a, (struct epoll_event *)b, c, (int)d < 0 ? NEVER : (uint64_t)d * 1000000));
    }
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2: {
        uint64_t before = block((const uint64_t *)e);
        return unblock((const uint64_t *)e, before, epoll_for(a, (struct epoll_event *)b, c, d ? nanoseconds_of((struct timespec *)d) : NEVER));
    }
#endif
    case SYS_nanosleep: return sleep_for(nanoseconds_of((struct timespec *)a));
    case SYS_clock_nanosleep:
        if (!(b & TIMER_ABSTIME)) return sleep_for(nanoseconds_of((struct timespec *)c));
        if (point((clockid_t)a, (struct timespec *)c) > atomic_load(&now)) return sleep_until(point((clockid_t)a, (struct timespec *)c), 0);
        return polls() ? sleep_until(NEVER, POLLER) : 0;
#ifdef SYS_pause
    case SYS_pause: return sleep_until(NEVER, 0);
#endif
    case SYS_rt_sigsuspend: {
        uint64_t before = block((const uint64_t *)a);
        return unblock((const uint64_t *)a, before, sleep_until(NEVER, 0));
    }
    case SYS_sched_yield: {
        take_lock();
        int others = 0;
        for (int i = 0; i < slots_end && !others; i++) others = is_ready(&slots[i]);
        if (!others) {
            free_lock();
            return polls() ? sleep_until(NEVER, POLLER) : 0;
        }
        mine->awaits = TURN;
        wait_here(NEVER, 0);
        return 0;
    }
    case SYS_clock_gettime: {
        struct timespec time = timespec_of(base_of((clockid_t)a) + told_time());
        memcpy((void *)b, &time, sizeof time);
        return 0;
    }
    case SYS_getrusage: {
        struct rusage *usage = (struct rusage *)b;
        long result = raw2(SYS_getrusage, a, b);
        if (result != 0) return result;
        memset(usage, 0, sizeof *usage);
        usage->ru_utime = timeval_of(told_time());
        usage->ru_maxrss = MAXRSS;
        return 0;
    }
    case SYS_gettimeofday: {
        struct timeval time = timeval_of(begun_at + told_time());
        if (a) memcpy((void *)a, &time, sizeof time);
        return 0;
    }
    case SYS_setitimer: return set_interval(a, (const struct itimerval *)b, (struct itimerval *)c);
    case SYS_getitimer: return set_interval(a, NULL, (struct itimerval *)b);
#ifdef SYS_alarm
    case SYS_alarm: {
        struct itimerval wanted = {{0, 0}, {(time_t)a, 0}}, old = {{0, 0}, {0, 0}};
        set_interval(ITIMER_REAL, &wanted, &old);
        return old.it_value.tv_sec + (old.it_value.tv_usec > 0);
    }
#endif
    case SYS_timerfd_create: return timer_descriptor(a, b);
    case SYS_timerfd_settime: return set_descriptor(a, b, (const struct itimerspec *)c, (struct itimerspec *)d);
    case SYS_timerfd_gettime: {
        struct timer *timer = timer_of((int)a);
        if (!timer) return -EINVAL;
        show_timer(timer, (struct itimerspec *)b);
        return 0;
    }
    case SYS_timer_create: {
        const struct sigevent *event = (const struct sigevent *)b;
        int kind = event ? event->sigev_notify : SIGEV_SIGNAL;
        if (kind != SIGEV_SIGNAL) {
            refuse(TIMED);
            return -ENOTSUP;
        }
        struct timer *timer = new_timer((clockid_t)a, -1, event ? event->sigev_signo : SIGALRM);
        if (!timer) return -EAGAIN;
        *(int *)c = (int)(timer - timers);
        return 0;
    }
    case SYS_timer_settime: {
        struct timer *timer = timer_at(a);
        if (!timer) return -EINVAL;
        if (d) show_timer(timer, (struct itimerspec *)d);
        set_timer_spec(timer, (const struct itimerspec *)c, (int)(b & TIMER_ABSTIME));
        return 0;
    }
    case SYS_timer_gettime: {
        struct timer *timer = timer_at(a);
        if (!timer) return -EINVAL;
        show_timer(timer, (struct itimerspec *)b);
        return 0;
    }
    case SYS_timer_getoverrun: return 0;
    case SYS_timer_delete: {
        struct timer *timer = timer_at(a);
        if (!timer) return -EINVAL;
        timer->used = 0;
        return 0;
    }
    default: return raw(number, a, b, c, d, e, f);
    }
}

#if defined(__x86_64__)
/* Goes on with these registers, in the order in which the kernel tells them. */
__asm__(".text\n.globl demi_go_on\n.hidden demi_go_on\n"
        "demi_go_on:\n mov %rdi,%rcx\n mov 120(%rcx),%rax\n mov 128(%rcx),%rdx\n mov %rdx,-8(%rax)\n"
        " mov (%rcx),%r8\n mov 8(%rcx),%r9\n mov 16(%rcx),%r10\n mov 24(%rcx),%r11\n mov 32(%rcx),%r12\n mov 40(%rcx),%r13\n mov 48(%rcx),%r14\n mov 56(%rcx),%r15\n"
        " mov 64(%rcx),%rdi\n mov 72(%rcx),%rsi\n mov 80(%rcx),%rbp\n mov 88(%rcx),%rbx\n mov 96(%rcx),%rdx\n lea -8(%rax),%rsp\n mov 112(%rcx),%rcx\n xor %eax,%eax\n ret\n");
extern _Noreturn void demi_go_on(const long *registers);

/* On these a guest's thread begins; and in Go, whose threads have small stacks, its calls are answered there until it has a place for signals of its
 * own. */
static char alternate[SLOTS][SCRATCH] __attribute__((aligned(16)));

static int guest_begins(void *at) {
    struct slot *slot = at;
    struct own *place = &owns[slot - slots];
    is_own(place);
    slot->tid = own_tid();
    await_turn(slot);
    slot->awaits = NOTHING;
    receive(slot);
    stack_t stack = {.ss_sp = alternate[slot - slots], .ss_size = SCRATCH};
    /* From here on nothing that was kept on this stack is needed. */
    if (is_go) raw2(SYS_sigaltstack, &stack, NULL);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &slot->mask, NULL, 8);
    set_thread_memory(slot->outside);
    demi_go_on(slot->registers);
}

/* A guest's call for a new thread. */
static long new_guest_thread(const ucontext_t *context) {
    const greg_t *r = context->uc_mcontext.gregs;
    long flags = r[REG_RDI];
    if (!enter()) return -EAGAIN;
    take_lock();
    struct slot *slot = taken(0);
    free_lock();
    if (!slot) return -EAGAIN;
    int place = (int)(slot - slots);
    for (int i = 0; i < 17; i++) slot->registers[i] = r[i];
    slot->registers[REG_RSP] = r[REG_RSI];
    memcpy(&slot->mask, &context->uc_sigmask, sizeof slot->mask);
    slot->outside = flags & CLONE_SETTLS ? (uintptr_t)r[REG_R8] : own()->outside;
    slot->known = shown_pid + place;
    memset(&owns[place], 0, sizeof owns[place]);
    owns[place].slot = slot;
    owns[place].outside = slot->outside;
    if (flags & CLONE_CHILD_CLEARTID) slot->at_end = (_Atomic uint32_t *)r[REG_R10];
    if (flags & CLONE_PARENT_SETTID) *(int *)r[REG_RDX] = slot->known;
    if (flags & CLONE_CHILD_SETTID) *(int *)r[REG_R10] = slot->known;
    take_lock();
    slot->state = WAITING;
    slot->awaits = TURN;
    slot->since = ++waits;
    free_lock();
    long theirs = CLONE_SETTLS | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID;
    long made = begin_here(guest_begins, alternate[place] + SCRATCH, flags & ~theirs, slot, NULL, NULL);
    if (made < 0) {
        take_lock();
        slot->state = FREE;
        free_lock();
        return made;
    }
    return slot->known;
}

/* The processor's own clock was asked, which tells the time as all other clocks do; or it is the program's own fault. */
static void on_fault(int signal, siginfo_t *info, void *at) {
    ucontext_t *context = at;
    greg_t *r = context->uc_mcontext.gregs;
    const uint8_t *code = (const uint8_t *)r[REG_RIP];
    /* What cannot be read has no address here, where the processor refused to tell the time: then the fault is that of an instruction. */
    if (info->si_code == SI_KERNEL && code && code[0] == 0x0f && (code[1] == 0x31 || (code[1] == 0x01 && code[2] == 0xf9))) {
        uint64_t told = MONOTONIC + atomic_load(&now);
        r[REG_RAX] = (greg_t)(told & 0xffffffff);
        r[REG_RDX] = (greg_t)(told >> 32);
        if (code[1] == 0x01) r[REG_RCX] = 0;
        r[REG_RIP] += code[1] == 0x31 ? 2 : 3;
        return;
    }
    if (of_fault.handler == (void *)SIG_DFL || of_fault.handler == (void *)SIG_IGN) {
        struct {
            void *handler;
            unsigned long flags;
            void *restorer;
            uint64_t mask;
        } plain = {(void *)SIG_DFL, 0, NULL, 0};
        raw4(SYS_rt_sigaction, SIGSEGV, &plain, NULL, 8);
        /* An instruction is tried again, and ends the program; who was sent the signal gets it again. */
        if (info->si_code <= 0) raw3(SYS_tgkill, own_pid, own_tid(), SIGSEGV);
        return;
    }
    ((void (*)(int, siginfo_t *, void *))of_fault.handler)(signal, info, at);
}
#endif

static void on_trap(int signal, siginfo_t *info, void *at) {
    (void)signal;
    ucontext_t *context = at;
    uint64_t *mask = (uint64_t *)&context->uc_sigmask;
    uintptr_t before = 0;
    if (guest) {
        before = own()->outside = thread_memory();
        set_thread_memory(inside);
    }
#if defined(__x86_64__)
    greg_t *r = context->uc_mcontext.gregs;
    int begins = guest && info->si_syscall == SYS_clone && r[REG_RDI] & CLONE_THREAD;
    /* A thread that gives its own stack back is about to end, and its end is answered on it. */
    uint64_t stack = (uint64_t)r[REG_RSP], from = (uint64_t)r[REG_RDI];
    int leaves = info->si_syscall == SYS_munmap && stack >= from && stack - from <= (uint64_t)r[REG_RSI];
    r[REG_RAX] = begins   ? new_guest_thread(context)
                 : leaves ? 0
                          : answer(mask, info->si_syscall, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
#else
    unsigned long long *r = context->uc_mcontext.regs;
    r[0] = (unsigned long long)answer(mask, info->si_syscall, (long)r[0], (long)r[1], (long)r[2], (long)r[3], (long)r[4], (long)r[5]);
#endif
    if (guest) set_thread_memory(before);
}

/* ---- calls by name ---- */

/* What programs call most often is answered without a trap, which costs a signal. It is the same answer. */
static long called(long number, long a, long b, long c, long d, long e, long f) {
    uint64_t mask = 0;
    pthread_testcancel();
    raw4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
    long result = answer(&mask, number, a, b, c, d, e, f);
    if (result == -EINTR) pthread_testcancel();
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}

static int wrong(void) {
    errno = EINVAL;
    return -1;
}

int poll(struct pollfd *fds, nfds_t count, int timeout) {
    REAL(poll);
    if (!active()) return real(fds, count, timeout);
    struct timespec time = timespec_of((uint64_t)(timeout < 0 ? 0 : timeout) * 1000000);
    return (int)called(SYS_ppoll, (long)fds, (long)count, timeout < 0 ? 0 : (long)&time, 0, 8, 0);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *set) {
    REAL(ppoll);
    if (!active()) return real(fds, count, timeout, set);
    return (int)called(SYS_ppoll, (long)fds, (long)count, (long)timeout, (long)set, 8, 0);
}

int select(int count, fd_set *in, fd_set *out, fd_set *others, struct timeval *timeout) {
    REAL(select);
    if (!active()) return real(count, in, out, others, timeout);
    if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) return wrong();
    struct timespec time = {0};
    if (timeout) time = timespec_of(of_timeval(timeout));
    return (int)called(SYS_pselect6, count, (long)in, (long)out, (long)others, timeout ? (long)&time : 0, 0);
}

int pselect(int count, fd_set *in, fd_set *out, fd_set *others, const struct timespec *timeout, const sigset_t *set) {
    REAL(pselect);
    if (!active()) return real(count, in, out, others, timeout, set);
    long both[2] = {(long)set, 8};
    return (int)called(SYS_pselect6, count, (long)in, (long)out, (long)others, (long)timeout, (long)both);
}

int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *set) {
    REAL(epoll_pwait);
    if (!active()) return real(epoll, events, most, timeout, set);
    return (int)called(SYS_epoll_pwait, epoll, (long)events, most, timeout, (long)set, 8);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    REAL(epoll_wait);
    return active() ? epoll_pwait(epoll, events, most, timeout, NULL) : real(epoll, events, most, timeout);
}

static int is_time(const struct timespec *time) { return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)SECOND; }

int nanosleep(const struct timespec *duration, struct timespec *left) {
    REAL(nanosleep);
    if (!active()) return real(duration, left);
    return is_time(duration) ? (int)called(SYS_nanosleep, (long)duration, (long)left, 0, 0, 0, 0) : wrong();
}

/* Tells its errors by what it returns. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    REAL(clock_nanosleep);
    if (!active()) return real(clock, flags, time, left);
    if (!is_time(time)) return EINVAL;
    int before = errno, result = (int)called(SYS_clock_nanosleep, clock, flags, (long)time, (long)left, 0, 0) == 0 ? 0 : errno;
    errno = before;
    return result;
}

ssize_t write(int fd, const void *buffer, size_t length) {
    REAL(write);
    return active() ? called(SYS_write, fd, (long)buffer, (long)length, 0, 0, 0) : real(fd, buffer, length);
}

/* ---- the filter ---- */

/* Calls that are answered here. */
static const int trapped[] = {
    SYS_futex, SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_rt_sigsuspend, SYS_sched_yield, SYS_clock_gettime, SYS_gettimeofday, SYS_getrusage, SYS_setitimer, SYS_getitimer,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_timer_create, SYS_timer_settime, SYS_timer_gettime,
    SYS_timer_getoverrun, SYS_timer_delete, SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_getpid, SYS_getppid, SYS_gettid, SYS_kill,
    SYS_tkill, SYS_tgkill, SYS_exit, SYS_write, SYS_writev, SYS_sendfile, SYS_splice, SYS_tee, SYS_vmsplice, SYS_getrandom, SYS_socket, SYS_socketpair, SYS_connect, SYS_execve, SYS_execveat, SYS_openat,
    SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_ftruncate, SYS_truncate, SYS_fallocate, SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_linkat,
    SYS_symlinkat, SYS_fsync, SYS_fdatasync, SYS_sync, SYS_syncfs,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_rename
    SYS_rename, SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_link, SYS_symlink,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_select
    SYS_select,
#endif
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_pause
    SYS_pause,
#endif
#ifdef SYS_alarm
    SYS_alarm,
#endif
#ifdef SYS_fork
    SYS_fork, SYS_vfork,
#endif
#ifdef SYS_open
    SYS_open,
#endif
};

#define STATEMENT(code, k) (struct sock_filter) BPF_STMT(code, k)
#define JUMP(code, k, yes, no) (struct sock_filter) BPF_JUMP(code, k, yes, no)
#define LOAD(member) STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define GIVE(what) STATEMENT(BPF_RET | BPF_K, what)

static int filter_calls(void) {
    static struct sock_filter program[512];
    int at = 0;
    program[at++] = LOAD(arch);
    program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    program[at++] = GIVE(SECCOMP_RET_ALLOW);
    /* What this file does itself. */
    program[at++] = STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4);
    program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(GATE >> 32), 0, 3);
    program[at++] = STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer));
    program[at++] = JUMP(BPF_JMP | BPF_JGE | BPF_K, GATE_LENGTH, 1, 0);
    program[at++] = GIVE(SECCOMP_RET_ALLOW);
    program[at++] = LOAD(nr);
    for (size_t i = 0; i < sizeof trapped / sizeof *trapped; i++) {
        program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)trapped[i], 0, 1);
        program[at++] = GIVE(SECCOMP_RET_TRAP);
    }
    /* The C library does without these. */
    static const int absent[] = {SYS_clone3, 425 /* io_uring_setup */};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)absent[i], 0, 1);
        program[at++] = GIVE(SECCOMP_RET_ERRNO | ENOSYS);
    }
    /* A copy has all of the memory: what runtimes keep from children that become other programs too. These calls do nothing, and succeed. */
    program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 5);
    program[at++] = STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
    program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTFORK, 1, 0);
    program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 1);
    program[at++] = GIVE(SECCOMP_RET_ERRNO);
    program[at++] = GIVE(SECCOMP_RET_ALLOW);
    /* A new thread is no new process. */
    program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    program[at++] = STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
    program[at++] = JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    program[at++] = GIVE(SECCOMP_RET_TRAP);
    /* The threads of a guest are begun here; others by name. */
    program[at++] = GIVE(guest ? SECCOMP_RET_TRAP : SECCOMP_RET_ALLOW);
    if (guest) {
        static const int paths[] = {SYS_readlinkat, SYS_munmap,
#ifdef SYS_readlink
                                    SYS_readlink
#endif
        };
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
            program[at++] = JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)paths[i], 0, 1);
            program[at++] = GIVE(SECCOMP_RET_TRAP);
        }
    }
    program[at++] = GIVE(SECCOMP_RET_ALLOW);
    struct sock_fprog whole = {(unsigned short)at, program};
    /* Go calls the kernel on small stacks; every thread of it has another for signals. */
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER | (is_go ? SA_ONSTACK : 0)};
    if (sigaction(SIGSYS, &action, NULL) != 0) return -1;
#if defined(__x86_64__)
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    if ((is_go || guest) && prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0) {
        is_watched = 1;
        if (sigaction(SIGSEGV, &fault, NULL) != 0) return -1;
    }
#endif
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGSYS);
    pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0);
}

/* ---- the beginning ---- */

/* Shells have functions for the environment of their own, which do something else. */
extern char **environ;

static int is_named(const char *entry, const char *name) {
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static const char *setting(const char *name) {
    for (char **entry = environ; entry && *entry; entry++)
        if (is_named(*entry, name)) return *entry + strlen(name) + 1;
    return NULL;
}

static void forget(const char *name) {
    char **to = environ;
    for (char **entry = environ; entry && *entry; entry++)
        if (!is_named(*entry, name)) *to++ = *entry;
    if (to) *to = NULL;
}

static uint64_t number_of(const char *name) {
    const char *text = setting(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void limit(int resource, uint64_t most) {
    struct rlimit limits = {most, most};
    setrlimit(resource, &limits);
}

/* What the scheduler says in the environment; kept for the program that a shell starts in its place. */
static const char *const told[] = {"LD_PRELOAD", "DEMI_SHIM_SOCKET", "DEMI_SHIM_SEED", "DEMI_SHIM_CLOCK", "DEMI_SHIM_MEMORY", "DEMI_SHIM_CPU", "DEMI_SHIM_PLACE", "DEMI_SHIM_LIFE", "DEMI_SHIM_KEPT", "DEMI_SHIM_CARRIER"};
#define TOLD (sizeof told / sizeof *told)
static char *kept[TOLD];
/* The process is a shell, which has not read anything yet: it may be about to become the program. */
static int is_shell;
static uint64_t clock_told, memory_told, cpu_told;

/* The program that does nothing, in whose process guests are loaded. */
static char carrier[PATH_MAX];
#if defined(__x86_64__)
/* Where a guest begins; 0 where there is none. */
static uintptr_t guest_entry;
#endif

static void take_over(void) {
    is_shell = 0;
    if (open_gate() != 0) _exit(137);
    own_pid = getpid();
    if (memory_told) limit(RLIMIT_DATA, memory_told);
    limit(RLIMIT_CORE, 0);
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        int count = CPU_COUNT(&all), want = count ? (int)(cpu_told % (uint64_t)count) : 0;
        CPU_ZERO(&one);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &all) && want-- == 0) CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    atomic_store(&now, clock_told);
#if defined(__x86_64__)
    if (guest_entry) {
        quick = (getauxval(AT_HWCAP2) & 2) != 0;
        inside = (uintptr_t)__builtin_thread_pointer();
        guest = 1;
        is_own(&owns[0]);
    }
#endif
    create = (__typeof__(pthread_create) *)dlsym(RTLD_NEXT, "pthread_create");
    mine = taken(own_tid());
    holder = mine;
    control = connected();
    begin_to_listen();
    /* What it finds is there for good. */
    if (kept_folder[0] && getcwd(work_folder, sizeof work_folder)) keep_all(work_folder);
    if (filter_calls() != 0) refuse(UNTRAPPED);
}

static int starts_others(void) {
    static const char *const shells[] = {"sh", "dash", "bash", "ksh", "zsh", "busybox", "env", "nice", "stdbuf", "timeout"};
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(name, shells[i]) == 0) return 1;
    return 0;
}

/* Whether a part of a program is in memory. */
static int is_loaded(const ElfW(Phdr) *table, size_t count, const ElfW(Phdr) *part) {
    for (size_t i = 0; i < count; i++)
        if (table[i].p_type == PT_LOAD && part->p_vaddr >= table[i].p_vaddr && part->p_vaddr + part->p_memsz <= table[i].p_vaddr + table[i].p_filesz) return 1;
    return 0;
}

/* Whether a program has the note that Go's linker leaves. */
static int has_go_note(const ElfW(Phdr) *table, size_t count, uintptr_t base) {
    for (size_t i = 0; i < count; i++) {
        if (table[i].p_type != PT_NOTE || !is_loaded(table, count, &table[i])) continue;
        uintptr_t at = base + table[i].p_vaddr, end = at + table[i].p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            at += sizeof *note;
            if (note->n_namesz == 4 && at + 4 <= end && memcmp((const char *)at, "Go\0", 4) == 0) return 1;
            at += ((note->n_namesz + 3) & ~3ul) + ((note->n_descsz + 3) & ~3ul);
        }
    }
    return 0;
}

/* How far from where it was linked the program was loaded. */
static uintptr_t base_of_program(void) {
    const ElfW(Phdr) *table = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    for (size_t i = 0; i < getauxval(AT_PHNUM); i++)
        if (table[i].p_type == PT_PHDR) return (uintptr_t)table - table[i].p_vaddr;
    return 0;
}

/* What the kernel told the process when it began, after its environment. */
static ElfW(auxv_t) *told_by_kernel(char **environment) {
    while (*environment) environment++;
    return (ElfW(auxv_t) *)(environment + 1);
}

#if defined(__x86_64__)
/* The table of a guest's parts, as the guest is told of it. */
static uintptr_t guest_table, guest_start;
static size_t guest_parts;
/* Where its own loader lies, which loads its libraries; 0 where it has none. */
static uintptr_t guest_loader;

/* A program or loader in memory: how far it is from where it was linked, its table, and where it begins. */
struct image {
    uintptr_t base, table, entry;
    ElfW(Phdr) parts[64];
    size_t count;
    /* The path of the loader that it names. */
    char loader[256];
};

static _Noreturn void no_guest(const char *what) {
    fprintf(stderr, "%s: %s\n", guest_path, what);
    _exit(126);
}

/* Puts a program where it wants to be. */
static void load_image(const char *path, struct image *image) {
    ElfW(Ehdr) header;
    ElfW(Phdr) *table = image->parts;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || pread(file, &header, sizeof header, 0) != (ssize_t)sizeof header) no_guest("it cannot be read");
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
        (header.e_type != ET_EXEC && header.e_type != ET_DYN) || header.e_phentsize != sizeof *table || header.e_phnum > 64)
        no_guest("it is no program for this processor");
    size_t length = header.e_phnum * sizeof *table;
    if (pread(file, table, length, (off_t)header.e_phoff) != (ssize_t)length) no_guest("it is no whole program");
    const uintptr_t page = 4095;
    uintptr_t low = UINTPTR_MAX, high = 0, base = 0;
    for (size_t i = 0; i < header.e_phnum; i++) {
        if (table[i].p_type != PT_LOAD) continue;
        if (table[i].p_vaddr < low) low = table[i].p_vaddr & ~page;
        if (table[i].p_vaddr + table[i].p_memsz > high) high = (table[i].p_vaddr + table[i].p_memsz + page) & ~page;
    }
    if (low >= high) no_guest("it has nothing to load");
    /* All of it is taken first: the parts lie in it. */
    int fixed = header.e_type == ET_EXEC ? MAP_FIXED_NOREPLACE : 0;
    void *wanted = fixed ? (void *)low : NULL;
    void *whole = mmap(wanted, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (whole == MAP_FAILED || (fixed && whole != wanted)) no_guest("there is no room for it in memory");
    base = (uintptr_t)whole - low;
    for (size_t i = 0; i < header.e_phnum; i++) {
        const ElfW(Phdr) *part = &table[i];
        if (part->p_type == PT_LOAD && part->p_offset <= header.e_phoff && header.e_phoff < part->p_offset + part->p_filesz)
            image->table = base + part->p_vaddr + (header.e_phoff - part->p_offset);
        if (part->p_type == PT_INTERP && part->p_filesz < sizeof image->loader &&
            pread(file, image->loader, part->p_filesz, (off_t)part->p_offset) != (ssize_t)part->p_filesz)
            no_guest("it is no whole program");
        if (part->p_type != PT_LOAD || part->p_memsz == 0) continue;
        int rights = (part->p_flags & PF_R ? PROT_READ : 0) | (part->p_flags & PF_W ? PROT_WRITE : 0) | (part->p_flags & PF_X ? PROT_EXEC : 0);
        uintptr_t start = (base + part->p_vaddr) & ~page, filled = base + part->p_vaddr + part->p_filesz;
        uintptr_t mapped = (filled + page) & ~page, end = (base + part->p_vaddr + part->p_memsz + page) & ~page;
        if (part->p_filesz > 0 && mmap((void *)start, filled - start, rights, MAP_PRIVATE | MAP_FIXED, file, (off_t)(part->p_offset & ~page)) == MAP_FAILED)
            no_guest("a part of it cannot be loaded");
        if (part->p_filesz == 0) mapped = start;
        if (part->p_memsz > part->p_filesz && part->p_filesz > 0 && mapped > filled) {
            if (!(rights & PROT_WRITE)) mprotect((void *)(mapped - page - 1), page + 1, rights | PROT_WRITE);
            memset((void *)filled, 0, mapped - filled);
            if (!(rights & PROT_WRITE)) mprotect((void *)(mapped - page - 1), page + 1, rights);
        }
        if (end > mapped && mmap((void *)mapped, end - mapped, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            no_guest("there is no memory for it");
    }
    close(file);
    image->base = base;
    image->count = header.e_phnum;
    image->entry = base + header.e_entry;
}

/* Loads a program that is linked statically, or to another C library, with the loader that it names. */
static void load_guest(void) {
    static struct image program, loader;
    load_image(guest_path, &program);
    guest_table = program.table;
    guest_parts = program.count;
    guest_start = guest_entry = program.entry;
    is_go = has_go_note(program.parts, program.count, program.base);
    if (program.loader[0]) {
        load_image(program.loader, &loader);
        guest_loader = loader.base;
        guest_entry = loader.entry;
    }
}

/* Begins the guest, with a stack as the kernel makes it for a program. */
static _Noreturn void begin_guest(int argc, char **argv, const ElfW(auxv_t) *told_here) {
    size_t variables = 0, entries = 0;
    while (environ[variables]) variables++;
    while (told_here[entries].a_type != AT_NULL) entries++;
    static unsigned char chance[16];
    fill(chance, sizeof chance);
    size_t words = 1 + (size_t)argc + 1 + variables + 1 + 2 * (entries + 8);
    long *block = __builtin_alloca_with_align((words + 2) * sizeof *block, 128);
    long *at = block;
    *at++ = argc;
    for (int i = 0; i < argc; i++) *at++ = (long)argv[i];
    *at++ = 0;
    for (size_t i = 0; i < variables; i++) *at++ = (long)environ[i];
    *at++ = 0;
    for (size_t i = 0; i < entries; i++) {
        long kind = (long)told_here[i].a_type, value = (long)told_here[i].a_un.a_val;
        switch (kind) {
        /* Clocks are asked of the kernel. */
        case AT_SYSINFO_EHDR: continue;
        case AT_PHDR: value = (long)guest_table; break;
        case AT_PHNUM: value = (long)guest_parts; break;
        case AT_ENTRY: value = (long)guest_start; break;
        case AT_BASE: value = (long)guest_loader; break;
        case AT_RANDOM: value = (long)chance; break;
        case AT_EXECFN: value = (long)guest_path; break;
        }
        *at++ = kind;
        *at++ = value;
    }
    *at++ = AT_NULL;
    *at++ = 0;
    __asm__ volatile("mov %0, %%rsp\n xor %%edx, %%edx\n xor %%ebp, %%ebp\n jmp *%1\n" : : "r"(block), "r"(guest_entry) : "memory", "rdx");
    __builtin_unreachable();
}
#endif

__attribute__((constructor)) static void begin(int argc, char **argv, char **environment) {
    const char *path = setting("DEMI_SHIM_SOCKET");
    if (!path) return;
    char **last = environment;
    while (*last) last++;
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
    seed = number_of("DEMI_SHIM_SEED");
    clock_told = number_of("DEMI_SHIM_CLOCK");
    memory_told = number_of("DEMI_SHIM_MEMORY");
    cpu_told = number_of("DEMI_SHIM_CPU");
    uint64_t place = number_of("DEMI_SHIM_PLACE"), life = number_of("DEMI_SHIM_LIFE");
    begun_at += place * APART;
    shown_pid += (pid_t)((place + life * LIVES) % 4000 * 1024);
    const char *carries = setting("DEMI_SHIM_CARRIER");
    if (carries && strlen(carries) < sizeof carrier) strcpy(carrier, carries);
    const char *folder = setting("DEMI_SHIM_KEPT");
    if (folder && strlen(folder) < sizeof kept_folder) strcpy(kept_folder, folder);
    for (size_t i = 0; i < TOLD; i++) {
        const char *value = setting(told[i]);
        if (value && asprintf(&kept[i], "%s=%s", told[i], value) < 0) _exit(137);
        forget(told[i]);
    }
    if (starts_others()) {
        is_shell = 1;
        own_pid = getpid();
        return;
    }
    ElfW(auxv_t) *told_here = told_by_kernel(last);
#if defined(__x86_64__)
    /* The process was started for the program that its arguments begin with. */
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    if (carrier[0] && strcmp(self, carrier) == 0 && argc > 1 && realpath(argv[1], guest_path)) {
        load_guest();
        take_over();
        begin_guest(argc - 1, argv + 1, told_here);
    }
#endif
    is_go = has_go_note((const ElfW(Phdr) *)getauxval(AT_PHDR), getauxval(AT_PHNUM), base_of_program());
    if (is_go) {
        /* Go looks for what the kernel told behind the end of its environment, so that it must end where it did. */
        size_t left = 0;
        while (environ[left]) left++;
        for (char **entry = environ + left; left > 0 && entry < last; entry++) *entry = environ[left - 1];
        for (ElfW(auxv_t) *one = told_here; one->a_type != AT_NULL; one++) {
            /* Go finds by itself where clocks are told without the kernel, and what it begins its random numbers with. */
            if (one->a_type == AT_SYSINFO_EHDR) one->a_type = AT_IGNORE;
            if (one->a_type == AT_RANDOM) fill((void *)one->a_un.a_val, 16);
        }
    }
    take_over();
}

/* A shell that becomes another program gives it the shim; programs that it starts beside itself do without. */
static char **with_shim(char *const environment[]) {
    size_t count = 0;
    while (environment && environment[count]) count++;
    char **whole = calloc(count + TOLD + 1, sizeof *whole);
    if (!whole) _exit(137);
    for (size_t i = 0; i < count; i++) whole[i] = environment[i];
    for (size_t i = 0; i < TOLD; i++)
        if (kept[i]) whole[count++] = kept[i];
    return whole;
}

/* Whether a file is a program that loads no libraries, or those of another C library, so that the shim cannot be given to it. */
static int is_strange(const char *path) {
    ElfW(Ehdr) header;
    int file = open(path, O_RDONLY | O_CLOEXEC), dynamic = 0;
    int is_program = file >= 0 && pread(file, &header, sizeof header, 0) == (ssize_t)sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0;
    for (int i = 0; is_program && i < header.e_phnum; i++) {
        ElfW(Phdr) part;
        if (pread(file, &part, sizeof part, (off_t)(header.e_phoff + (size_t)i * sizeof part)) != (ssize_t)sizeof part) break;
        char loader[256] = {0};
        if (part.p_type == PT_INTERP && part.p_filesz < sizeof loader && pread(file, loader, part.p_filesz, (off_t)part.p_offset) > 0)
            dynamic = strstr(loader, "/ld-linux") != NULL;
    }
    if (file >= 0) close(file);
    return is_program && !dynamic;
}

/* The words of a command behind those that start it as a guest. */
static char **as_guest(const char *path, char *const argv[]) {
    size_t count = 0;
    while (argv[count]) count++;
    char **whole = calloc(count + 2, sizeof *whole);
    if (!whole) _exit(137);
    whole[0] = carrier;
    whole[1] = (char *)path;
    for (size_t i = 1; i < count; i++) whole[i + 1] = argv[i];
    return whole;
}

int execve(const char *path, char *const argv[], char *const environment[]) {
    REAL(execve);
    if (!is_shell || getpid() != own_pid) return real(path, argv, environment);
    char **whole = with_shim(environment);
    char **words = carrier[0] && argv[0] && is_strange(path) ? as_guest(path, argv) : NULL;
    int result = words ? real(carrier, words, whole) : real(path, argv, whole);
    free(words);
    free(whole);
    return result;
}

#define EXEC(name)                                                            \
    int name(const char *file, char *const argv[]) {                          \
        REAL(name);                                                           \
        if (!is_shell || getpid() != own_pid) return real(file, argv);        \
        char **before = environ, **whole = with_shim(environ);                \
        environ = whole;                                                      \
        int result = real(file, argv);                                        \
        environ = before;                                                     \
        free(whole);                                                          \
        return result;                                                        \
    }
EXEC(execv)
EXEC(execvp)

/* A shell that reads is the program itself. */
ssize_t read(int fd, void *buffer, size_t length) {
    REAL(read);
    if (is_shell && fd == 0 && getpid() == own_pid) take_over();
    return active() ? called(SYS_read, fd, (long)buffer, (long)length, 0, 0, 0) : real(fd, buffer, length);
}

/* ---- threads, processes, names ---- */

struct beginning {
    void *(*routine)(void *);
    void *argument;
    struct slot *slot;
};

static void *begin_thread(void *argument) {
    struct beginning beginning = *(struct beginning *)argument;
    mine = beginning.slot;
    if (mine) {
        mine->tid = mine->known = own_tid();
        await_turn(mine);
        mine->awaits = NOTHING;
        receive(mine);
    }
    free(argument);
    return beginning.routine(beginning.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
    REAL(pthread_create);
    if (!active()) return real(thread, attributes, routine, argument);
    struct beginning *beginning = malloc(sizeof *beginning);
    if (!beginning) return EAGAIN;
    enter();
    take_lock();
    struct slot *slot = taken(0);
    if (slot) {
        /* It begins when its turn comes. */
        slot->state = WAITING;
        slot->awaits = TURN;
        slot->since = ++waits;
    }
    *beginning = (struct beginning){routine, argument, slot};
    free_lock();
    int result = real(thread, attributes, begin_thread, beginning);
    if (slot) {
        if (result != 0) slot->state = FREE;
        else slot->thread = *thread;
    }
    if (result != 0) free(beginning);
    return result;
}

/* Waits until a thread is about to end. */
static int await_end(pthread_t thread, uint64_t deadline) {
    if (!enter()) return 1;
    take_lock();
    for (int i = 0; i < slots_end; i++) {
        if (slots[i].state == FREE || !slots[i].thread || !pthread_equal(slots[i].thread, thread) || &slots[i] == mine) continue;
        mine->awaits = END;
        mine->other = &slots[i];
        int why;
        do {
            why = wait_here(deadline, 0);
            if (why & TIME && mine->other->state != FREE) return 0;
            if (!(why & SIGNALLED)) return 1;
            take_lock();
            mine->awaits = END;
        } while (1);
    }
    free_lock();
    return 1;
}

int pthread_join(pthread_t thread, void **result) {
    REAL(pthread_join);
    if (!active()) return real(thread, result);
    await_end(thread, NEVER);
    passing++;
    int outcome = real(thread, result);
    passing--;
    return outcome;
}

int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until) {
    REAL(pthread_clockjoin_np);
    if (!active()) return real(thread, result, clock, until);
    return await_end(thread, until ? point(clock, until) : NEVER) ? pthread_join(thread, result) : ETIMEDOUT;
}

int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until) {
    REAL(pthread_timedjoin_np);
    if (!active()) return real(thread, result, until);
    return await_end(thread, until ? point(CLOCK_REALTIME, until) : NEVER) ? pthread_join(thread, result) : ETIMEDOUT;
}

/* Threads of C itself are begun and joined within the C library, where nothing can be taken over by name. */
struct c_beginning {
    thrd_start_t routine;
    void *argument;
};

static void *begin_c_thread(void *argument) {
    struct c_beginning beginning = *(struct c_beginning *)argument;
    free(argument);
    return (void *)(intptr_t)beginning.routine(beginning.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
    REAL(thrd_create);
    if (!active()) return real(thread, routine, argument);
    struct c_beginning *beginning = malloc(sizeof *beginning);
    if (!beginning) return thrd_nomem;
    *beginning = (struct c_beginning){routine, argument};
    int result = pthread_create(thread, NULL, begin_c_thread, beginning);
    if (result != 0) free(beginning);
    return result == 0 ? thrd_success : result == ENOMEM ? thrd_nomem : thrd_error;
}

int thrd_join(thrd_t thread, int *result) {
    REAL(thrd_join);
    if (!active()) return real(thread, result);
    void *outcome;
    if (pthread_join(thread, &outcome) != 0) return thrd_error;
    if (result) *result = (int)(intptr_t)outcome;
    return thrd_success;
}

int gethostname(char *name, size_t length) {
    REAL(gethostname);
    if (!active()) return real(name, length);
    snprintf(name, length, "node");
    return 0;
}

int uname(struct utsname *about) {
    REAL(uname);
    int result = real(about);
    if (active() && result == 0) strcpy(about->nodename, "node");
    return result;
}
