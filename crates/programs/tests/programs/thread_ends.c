/* Each request has a thread of its own. What the thread does when it ends takes long, and has the lock that the first thread needs for its answer. The
 * answer says how many stacks the threads had so far. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

#include "node.h"

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, small = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static int done, count;
static uintptr_t stacks[1024];
static volatile unsigned long work;

static void ends(void *none) {
    (void)none;
    for (unsigned long i = 0; i < 50000000; i++) work += i;
    pthread_mutex_unlock(&shared);
}

static void *answers(void *none) {
    uintptr_t stack = (uintptr_t)&none;
    pthread_mutex_lock(&shared);
    pthread_setspecific(key, &key);
    int at = 0;
    while (at < count && stacks[at] != stack) at++;
    if (at == count && count < 1024) stacks[count++] = stack;
    pthread_mutex_lock(&small);
    done = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&small);
    return NULL;
}

#ifdef OF_C
static int answers_in_c(void *none) {
    answers(none);
    return 0;
}

static int begin(pthread_t *thread, pthread_attr_t *attributes) {
    (void)attributes;
    return thrd_create(thread, answers_in_c, NULL) == thrd_success ? thrd_detach(*thread) : 1;
}
#else
static int begin(pthread_t *thread, pthread_attr_t *attributes) { return pthread_create(thread, attributes, answers, NULL); }
#endif

int main(void) {
    static char line[1 << 16], node[64], from[64], id[64], echo[64];
    pthread_key_create(&key, ends);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (fgets(line, sizeof line, stdin)) {
        text_of(line, "\"src\":\"", from);
        text_of(line, "\"msg_id\":", id);
        if (strstr(line, "\"type\":\"init\"")) {
            text_of(line, "\"node_id\":\"", node);
            printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"init_ok\",\"in_reply_to\":%s}}\n", node, from, id);
        } else {
            pthread_t thread;
            done = 0;
            if (begin(&thread, &detached) != 0) return 1;
            pthread_mutex_lock(&small);
            while (!done) pthread_cond_wait(&changed, &small);
            pthread_mutex_unlock(&small);
            pthread_mutex_lock(&shared);
            text_of(line, "\"echo\":\"", echo);
            printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"echo_ok\",\"echo\":\"%s\",\"stacks\":%d,\"in_reply_to\":%s}}\n", node, from, echo,
                   count, id);
            pthread_mutex_unlock(&shared);
        }
        fflush(stdout);
    }
    return 0;
}
