/* The cases that a word chooses; the ends of threads and of the program. */

#include "program.h"

#include <signal.h>
#include <sys/syscall.h>

struct root* root;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t byte_locks[64] = {[0 ... 63] = PTHREAD_MUTEX_INITIALIZER};
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

void run(void* (*function)(void*))
{
    pthread_t made[threads];
    for (uintptr_t i = 0; i < threads; ++i) {
        CHECK(pthread_create(&made[i], NULL, function, (void*)i) == 0);
    }
    for (uintptr_t i = 0; i < threads; ++i) {
        void* value = NULL;
        CHECK(pthread_join(made[i], &value) == 0);
        CHECK(value == (void*)(i + 100));
    }
}

static void* print_lines(void* number)
{
    for (int i = 0; i < 50; ++i) {
        printf("thread %d line %d of fifty\n", (int)(uintptr_t)number, i);
    }
    return (void*)((uintptr_t)number + 100);
}

static void* race(void* number)
{
    for (int i = 0; i < 200; ++i) {
        pthread_mutex_lock(&byte_locks[(uintptr_t)number]); /* each its own: no lock at all */
        root->bytes[0] = (unsigned char)(i + (int)(uintptr_t)number * 50);
        usleep(100);
        pthread_mutex_unlock(&byte_locks[(uintptr_t)number]);
    }
    return (void*)((uintptr_t)number + 100);
}

static void test_race(void)
{
    uint64_t races = 0;
    run(race);
    usleep(20000);
    CHECK(sp_statistic("races", &races) == SP_OK && races > 0);
}

static void* die_alone(void* how)
{
    pthread_mutex_lock(&lock);
    root->value = 666;
    if (how != NULL) { /* another thread sees a part */
        pthread_mutex_lock(&inner);
        root->other = 666;
        pthread_mutex_unlock(&inner);
    }
    usleep(10000);
    syscall(SYS_kill, getpid(), SIGKILL);
    return NULL;
}

static void test_death(void)
{
    pthread_t thread;
    void* value = NULL;
    pthread_mutex_lock(&lock);
    root->value = 1;
    pthread_mutex_unlock(&lock);
    CHECK(pthread_create(&thread, NULL, die_alone, NULL) == 0);
    CHECK(pthread_join(thread, &value) == 0 && value == PTHREAD_CANCELED);
    pthread_mutex_lock(&lock);
    CHECK(root->value == 1);
    root->value = 2;
    pthread_mutex_unlock(&lock);
}

static void die_in_open_section(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    root->value = 1;
    root->other = 2;
    pthread_mutex_unlock(&lock);
    CHECK(pthread_create(&thread, NULL, die_alone, (void*)1) == 0);
    pthread_join(thread, NULL);
    printf("went on\n");
}

static void* exit_program(void* unused)
{
    pthread_mutex_lock(&lock);
    root->value = 77;
    pthread_mutex_unlock(&lock);
    printf("bye\n");
    exit(3);
    return unused;
}

static void test_programs(void)
{
    CHECK(system("exit 3") == 3 << 8);
    CHECK(fork() == -1 && errno == ENOSYS);
}

static void in_section(uint64_t value)
{
    pthread_mutex_lock(&lock);
    root->value = value;
    root->other = ~value;
    pthread_mutex_unlock(&lock);
}

static void count_aloud(void)
{
    for (uint64_t i = root->value + 1, end = i + 20; i < end; ++i) {
        in_section(i);
        printf("%llu\n", (unsigned long long)i);
    }
}

static void wait_for_failure(void)
{
    int code = SP_OK;
    for (uint64_t i = 1; i < 1000 && code == SP_OK; ++i) {
        in_section(i);
        code = sp_wait_durable(sp_epoch(), 10000);
    }
    in_section(5); /* goes on */
    printf("%d %s\n", code, sp_last_error());
}

static void change_much(void)
{
    const size_t bytes = (size_t)24 << 20;
    unsigned char* block = sp_malloc(bytes);
    CHECK(block != NULL);
    pthread_mutex_lock(&lock);
    root->value = 8;
    memset(block, 1, bytes);
    pthread_mutex_unlock(&lock);
}

int main(int arguments, char** argument)
{
    static const struct {
        const char* name;
        void (*run)(void);
    } tests[] = {{"mutex", test_mutex},
                 {"durable-mutex", test_durable_mutex},
                 {"bytes", test_bytes},
                 {"condition", test_condition},
                 {"barrier", test_barrier},
                 {"semaphore", test_semaphore},
                 {"rwlock", test_rwlock},
                 {"kinds", test_kinds},
                 {"threads", test_threads},
                 {"heap", test_heap},
                 {"durable-heap", test_durable_heap},
                 {"race", test_race},
                 {"death", test_death},
                 {"programs", test_programs}};
    const char* how = arguments > 1 ? argument[1] : "look";
    root = sp_root("root", sizeof *root);
    if (root == NULL) {
        fprintf(stderr, "%s\n", sp_last_error());
        return 1;
    }
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        if (strcmp(tests[i].name, how) == 0) {
            tests[i].run();
            printf("ok\n");
            return 0;
        }
    }
    if (strcmp(how, "look") == 0) {
        printf("%llu %llu\n", (unsigned long long)root->value, (unsigned long long)root->other);
    } else if (strcmp(how, "lines") == 0) {
        run(print_lines);
    } else if (strcmp(how, "count") == 0) {
        count_aloud();
    } else if (strcmp(how, "fail") == 0) {
        wait_for_failure();
    } else if (strcmp(how, "much") == 0) {
        change_much();
    } else if (strcmp(how, "open-death") == 0) {
        die_in_open_section();
    } else if (strcmp(how, "exit") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_program, NULL);
        while (1) {
            pause();
        }
    } else if (strcmp(how, "exit-main") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, print_lines, (void*)0);
        pthread_detach(thread);
        pthread_exit(NULL);
    } else if (strcmp(how, "killed") == 0) {
        pthread_mutex_lock(&lock);
        root->value = 5;
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        root->value = 6;
        kill(getpid(), SIGKILL);
    }
    return 0;
}
