/* A thread that asks for the time until it has passed, one that polls a flag and yields, and one that waits in a pipe of the program. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node.h"

static atomic_int flag;
static int ends[2];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *spins(void *none) {
    while (!atomic_load(&flag)) sched_yield();
    char byte = 'x';
    if (write(ends[1], &byte, 1) < 0) return none;
    return none;
}

int main(void) {
    static char line[1 << 16], node[64], from[64], id[64], echo[64];
    while (fgets(line, sizeof line, stdin)) {
        text_of(line, "\"src\":\"", from);
        text_of(line, "\"msg_id\":", id);
        if (strstr(line, "\"type\":\"init\"")) {
            text_of(line, "\"node_id\":\"", node);
            printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"init_ok\",\"in_reply_to\":%s}}\n", node, from, id);
        } else {
            pthread_t thread;
            char byte;
            atomic_store(&flag, 0);
            if (pipe(ends) != 0 || pthread_create(&thread, NULL, spins, NULL) != 0) return 1;
            double end = now() + 0.05;
            while (now() < end) {
            }
            atomic_store(&flag, 1);
            if (read(ends[0], &byte, 1) != 1) return 1;
            pthread_join(thread, NULL);
            close(ends[0]), close(ends[1]);
            text_of(line, "\"echo\":\"", echo);
            printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"echo_ok\",\"echo\":\"%s\",\"in_reply_to\":%s}}\n", node, from, echo, id);
        }
        fflush(stdout);
    }
    return 0;
}
