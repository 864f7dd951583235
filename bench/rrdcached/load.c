/* Clients of rrdcached, one thread and one connection each: UPDATE after UPDATE for some seconds, several in flight.
 *     rrdcached_load SOCKET CLIENTS IN_FLIGHT SECONDS FILES
 * The files are called CLIENT-NUMBER.rrd. Prints the updates that were answered, and the time, as JSON. A refused update ends it. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { clients_max = 64, in_flight_max = 256, command_bytes_max = 64, first_stamp = 1000000001 };

typedef struct {
    pthread_t thread;
    int number;
    int socket;
    long sent;
    long answered;
} client;

static int in_flight, files;
static double seconds;

static void die(const char* what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In one write: the daemon reads all that has arrived. */
static void send_updates(client* self, long count)
{
    char commands[in_flight_max * command_bytes_max];
    size_t size = 0;
    for (long i = 0; i < count; ++i, ++self->sent) {
        size += (size_t)snprintf(commands + size, command_bytes_max, "UPDATE %d-%ld.rrd %ld:%ld\n", self->number, self->sent % files,
                                 first_stamp + self->sent / files, self->sent % 1000);
    }
    for (size_t at = 0; at < size;) {
        const ssize_t written = write(self->socket, commands + at, size - at);
        if (written <= 0) {
            die("write");
        }
        at += (size_t)written;
    }
}

/* Returns how many answers have arrived, at least one. Each is a line that begins with "0 ". */
static long read_answers(client* self)
{
    static __thread char rest[4096];
    static __thread size_t rest_bytes;
    long answers = 0;
    while (answers == 0) {
        const ssize_t size = read(self->socket, rest + rest_bytes, sizeof rest - rest_bytes);
        if (size <= 0) {
            die("read");
        }
        rest_bytes += (size_t)size;
        size_t begin = 0;
        for (const char* end; (end = memchr(rest + begin, '\n', rest_bytes - begin)) != NULL; begin = (size_t)(end - rest) + 1) {
            if (strncmp(rest + begin, "0 ", 2) != 0) {
                fprintf(stderr, "rrdcached answers: %.*s\n", (int)(end - rest - (ssize_t)begin), rest + begin);
                exit(1);
            }
            ++answers;
        }
        memmove(rest, rest + begin, rest_bytes - begin);
        rest_bytes -= begin;
    }
    self->answered += answers;
    return answers;
}

static void* work(void* argument)
{
    client* const self = argument;
    const double end_s = now_s() + seconds;
    send_updates(self, in_flight);
    while (now_s() < end_s) {
        send_updates(self, read_answers(self));
    }
    while (self->answered < self->sent) {
        (void)read_answers(self);
    }
    return NULL;
}

int main(int argc, char** argv)
{
    static client clients[clients_max];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int count = argc == 6 ? atoi(argv[2]) : 0;
    in_flight = argc == 6 ? atoi(argv[3]) : 0;
    seconds = argc == 6 ? atof(argv[4]) : 0;
    files = argc == 6 ? atoi(argv[5]) : 0;
    if (count < 1 || count > clients_max || in_flight < 1 || in_flight > in_flight_max || files < 1) {
        fprintf(stderr, "usage: rrdcached_load SOCKET CLIENTS IN_FLIGHT SECONDS FILES\n");
        return 64;
    }
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
    for (int i = 0; i < count; ++i) {
        clients[i].number = i;
        clients[i].socket = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(clients[i].socket, (const struct sockaddr*)&address, sizeof address) != 0) {
            die(argv[1]);
        }
    }
    const double begin_s = now_s();
    long answered = 0;
    for (int i = 0; i < count; ++i) {
        if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0) {
            die("pthread_create");
        }
    }
    for (int i = 0; i < count; ++i) {
        (void)pthread_join(clients[i].thread, NULL);
        answered += clients[i].answered;
    }
    printf("{\"operations\": %ld, \"wall_ns\": %.0f}\n", answered, (now_s() - begin_s) * 1e9);
    return 0;
}
