// What a request or a thread does at the edges: false readiness, a ring closed under a waiting thread, a
// broken pipe, a wait left by longjmp. Each way prints what must be the same on every io_uring.
#define _GNU_SOURCE
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static struct io_uring ring;
static int ends[2];
static char bytes[64];

static int wait_for(int ms) {
    struct __kernel_timespec ts = {ms / 1000, ms % 1000 * 1000000L};
    struct io_uring_cqe *cqe;
    int error = io_uring_wait_cqe_timeout(&ring, &cqe, &ts);
    if (error)
        return error;
    int res = cqe->res;
    io_uring_cqe_seen(&ring, cqe);
    return res;
}

// Poll says that there is room, the call says that there is none.
static void false_readiness(void) {
    struct sockaddr_un to = {AF_UNIX};
    sprintf(to.sun_path + 1, "edges-%d", getpid());
    int in = socket(AF_UNIX, SOCK_DGRAM, 0), out = socket(AF_UNIX, SOCK_DGRAM, 0);
    bind(in, (void *)&to, sizeof to);
    while (sendto(out, "x", 1, MSG_DONTWAIT, (void *)&to, sizeof to) == 1)
        ;
    struct iovec iov = {bytes, 1};
    struct msghdr message = {&to, sizeof to, &iov, 1};
    io_uring_prep_sendmsg(io_uring_get_sqe(&ring), out, &message, 0);
    io_uring_submit(&ring);
    printf("full %d\n", wait_for(300));
    read(in, bytes, 1);
    // Linux 6.18 sends the message and answers 0.
    printf("room %d\n", wait_for(5000) >= 0);
    io_uring_prep_recv(io_uring_get_sqe(&ring), socket(AF_INET, SOCK_STREAM, 0), bytes, 8, MSG_ERRQUEUE);
    io_uring_submit(&ring);
    printf("error queue %d\n", wait_for(5000));
}

static void accept_on(const char *what, int fd) {
    io_uring_prep_accept(io_uring_get_sqe(&ring), fd, NULL, NULL, 0);
    io_uring_submit(&ring);
    printf("%s %d\n", what, wait_for(2000));
}

static void no_listener(void) {
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    accept_on("connected", pair[0]);
    accept_on("datagram", socket(AF_INET, SOCK_DGRAM, 0));
    accept_on("pipe", ends[0]);
}

static void *waiter(void *unused) {
    (void)unused;
    printf("waiter %ld\n", syscall(426, ring.ring_fd, 0, 1, 1, NULL, 8));
    return NULL;
}

static void closed_under_waiter(void) {
    io_uring_prep_read(io_uring_get_sqe(&ring), ends[0], bytes, 8, 0);
    io_uring_submit(&ring);
    pthread_t thread;
    pthread_create(&thread, NULL, waiter, NULL);
    usleep(200000);
    printf("close %d\n", close(ring.ring_fd));
    fflush(stdout);
    usleep(100000);
    write(ends[1], "x", 1);
    pthread_join(thread, NULL);
    printf("read %d\n", ring.cq.cqes[0].res);
}

static void broken_pipe(void) {
    close(ends[0]);
    io_uring_prep_write(io_uring_get_sqe(&ring), ends[1], "x", 1, 0);
    ring.sq.sqes[0].flags |= IOSQE_ASYNC;
    io_uring_submit(&ring);
    printf("alive %d\n", wait_for(2000));
}

static sigjmp_buf back;
static volatile int armed;

static void leave(int signal) {
    (void)signal;
    if (armed) {
        armed = 0;
        siglongjmp(back, 1);
    }
}

// 300 rings, each left by longjmp while its thread waits, under a limit of 200 descriptors.
static void left_by_longjmp(void) {
    struct sigaction action = {.sa_handler = leave};
    sigaction(SIGALRM, &action, NULL);
    for (int i = 0; i < 300; i++) {
        struct io_uring one;
        int error = io_uring_queue_init(8, &one, 0);
        if (error) {
            printf("ring %d: %s\n", i, strerror(-error));
            return;
        }
        if (!sigsetjmp(back, 1)) {
            struct itimerval soon = {{0, 0}, {0, 300}};
            armed = 1;
            setitimer(ITIMER_REAL, &soon, NULL);
            struct io_uring_cqe *cqe;
            do
                error = io_uring_wait_cqe(&one, &cqe);
            while (error == -EINTR);
            armed = 0;
            printf("wait %d: %s\n", i, strerror(-error));
            return;
        }
        io_uring_queue_exit(&one);
    }
    puts("all left");
}

static volatile int answer = 1;

static void on_timer(union sigval value) {
    io_uring_prep_nop(io_uring_get_sqe(&ring));
    io_uring_submit(&ring);
    answer = wait_for(2000) + value.sival_int;
}

// A callback in a thread of the C library's, which blocks all signals.
static void callback_thread(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD};
    struct itimerspec soon = {{0, 0}, {0, 1000000}};
    timer_t timer;
    event.sigev_value.sival_int = 40;
    event.sigev_notify_function = on_timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, NULL);
    while (answer == 1)
        usleep(1000);
    printf("callback %d\n", answer);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    pipe(ends);
    int error = io_uring_queue_init(8, &ring, 0);
    if (error) {
        printf("no ring: %d\n", error);
        return 0;
    }
    alarm(strcmp(way, "longjmp") ? 20 : 0);
    if (!strcmp(way, "readiness"))
        false_readiness();
    if (!strcmp(way, "listener"))
        no_listener();
    if (!strcmp(way, "closed"))
        closed_under_waiter();
    if (!strcmp(way, "pipe"))
        broken_pipe();
    if (!strcmp(way, "callback"))
        callback_thread();
    if (!strcmp(way, "longjmp"))
        left_by_longjmp();
    return 0;
}
