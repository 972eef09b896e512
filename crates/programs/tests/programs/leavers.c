/* Each request has a thread that nobody joins. It returns with a lock held, which a destructor of the thread gives back after a while. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static int ends[2];

static void destroy(void *value) {
    (void)value;
    for (volatile long i = 0; i < 5000000; i++) {
    }
    pthread_mutex_unlock(&lock);
}

static void *works(void *none) {
    pthread_setspecific(key, &lock);
    pthread_mutex_lock(&lock);
    char byte = 'x';
    if (write(ends[1], &byte, 1) < 0) return none;
    return none;
}

static void text_of(const char *line, const char *name, char *out) {
    const char *at = strstr(line, name);
    out[0] = 0;
    if (!at) return;
    at += strlen(name);
    int i = 0;
    while (*at && *at != '"' && *at != ',' && *at != '}' && i < 60) out[i++] = *at++;
    out[i] = 0;
}

int main(void) {
    static char line[1 << 16], node[64], from[64], id[64], echo[64];
    if (pthread_key_create(&key, destroy) != 0 || pipe(ends) != 0) return 1;
    while (fgets(line, sizeof line, stdin)) {
        text_of(line, "\"src\":\"", from);
        text_of(line, "\"msg_id\":", id);
        if (strstr(line, "\"type\":\"init\"")) {
            text_of(line, "\"node_id\":\"", node);
            printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"init_ok\",\"in_reply_to\":%s}}\n", node, from, id);
        } else {
            pthread_t thread;
            char byte;
            if (pthread_create(&thread, NULL, works, NULL) != 0 || pthread_detach(thread) != 0) return 1;
            if (read(ends[0], &byte, 1) != 1) return 1;
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
            text_of(line, "\"echo\":\"", echo);
            printf("{\"src\":\"%s\",\"dest\":\"%s\",\"body\":{\"type\":\"echo_ok\",\"echo\":\"%s\",\"in_reply_to\":%s}}\n", node, from, echo, id);
        }
        fflush(stdout);
    }
    return 0;
}
