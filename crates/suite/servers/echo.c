/*
 * An echo server on liburing, in three ways of using it.
 *
 * Usage: echo plain|multishot|zerocopy
 *
 * Prints "listening PORT" once it accepts on 127.0.0.1; SIGTERM ends it with status 0.
 * plain: one accept, recv or send at a time. multishot: accept and recv stay armed, recv takes its
 * buffers from a ring. zerocopy: as plain, with SEND_ZC; a buffer is used again after its notification.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES = 1024, BUFFER_BYTES = 8192, BUFFERS = 1024, GROUP = 7, CONNECTIONS = 4096 };
enum kind { ACCEPT, RECV, SEND };
enum mode { PLAIN, MULTISHOT, ZEROCOPY };

struct piece {
    int buffer;
    unsigned length;
    struct piece *next;
};

struct connection {
    int fd; /* 0: unused */
    int receiving, sending, ended, starved;
    unsigned from, to, notifications;
    struct piece *first, *last;
    char *memory;
};

static struct io_uring ring;
static enum mode mode;
static int listener;
static struct connection *connections[CONNECTIONS];
static struct io_uring_buf_ring *buffers;
static char *pool;
static int starving;
static volatile sig_atomic_t stopped;

static void on_term(int signal) {
    (void)signal;
    stopped = 1;
}

static void die(const char *what, int error) {
    fprintf(stderr, "echo: %s: %s\n", what, strerror(error));
    exit(1);
}

static struct io_uring_sqe *next_sqe(void) {
    struct io_uring_sqe *sqe;
    while (!(sqe = io_uring_get_sqe(&ring))) {
        int done = io_uring_submit(&ring);
        if (done < 0 && done != -EBUSY && done != -EINTR) die("submit", -done);
    }
    return sqe;
}

static void submit_as(struct io_uring_sqe *sqe, enum kind kind, int fd) {
    io_uring_sqe_set_data64(sqe, (unsigned long long)fd << 8 | kind);
}

static void start_accept(void) {
    struct io_uring_sqe *sqe = next_sqe();
    if (mode == MULTISHOT)
        io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
    else
        io_uring_prep_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
    submit_as(sqe, ACCEPT, listener);
}

static void start_recv(struct connection *c) {
    struct io_uring_sqe *sqe = next_sqe();
    if (mode == MULTISHOT) {
        io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = GROUP;
    } else {
        io_uring_prep_recv(sqe, c->fd, c->memory, BUFFER_BYTES, 0);
    }
    submit_as(sqe, RECV, c->fd);
    c->receiving = 1;
}

static void start_send(struct connection *c) {
    const char *base = mode == MULTISHOT ? pool + (size_t)c->first->buffer * BUFFER_BYTES : c->memory;
    struct io_uring_sqe *sqe = next_sqe();
    if (mode == ZEROCOPY)
        io_uring_prep_send_zc(sqe, c->fd, base + c->from, c->to - c->from, 0, 0);
    else
        io_uring_prep_send(sqe, c->fd, base + c->from, c->to - c->from, 0);
    submit_as(sqe, SEND, c->fd);
    c->sending = 1;
}

static void give_back(int buffer) {
    io_uring_buf_ring_add(buffers, pool + (size_t)buffer * BUFFER_BYTES, BUFFER_BYTES, buffer,
                          io_uring_buf_ring_mask(BUFFERS), 0);
    io_uring_buf_ring_advance(buffers, 1);
    for (int fd = 0; starving > 0 && fd < CONNECTIONS; fd++) {
        struct connection *c = connections[fd];
        if (c && c->starved) {
            c->starved = 0;
            starving--;
            start_recv(c);
            return;
        }
    }
}

static void drop_pieces(struct connection *c) {
    while (c->first) {
        struct piece *piece = c->first;
        c->first = piece->next;
        int buffer = piece->buffer;
        free(piece);
        give_back(buffer);
    }
}

/* Closes a connection that has ended once nothing of it is in flight. */
static void settle(struct connection *c) {
    if (!c->ended || c->receiving || c->sending || c->notifications) return;
    if (c->starved) starving--;
    connections[c->fd] = NULL;
    close(c->fd);
    c->starved = 0;
    drop_pieces(c);
    free(c->memory);
    free(c);
}

static void accepted(int fd) {
    if (fd >= CONNECTIONS) die("too many connections", EMFILE);
    struct connection *c = calloc(1, sizeof *c);
    int one = 1;
    if (!c) die("calloc", errno);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->fd = fd;
    if (mode != MULTISHOT && !(c->memory = malloc(BUFFER_BYTES))) die("malloc", errno);
    connections[fd] = c;
    start_recv(c);
}

static void queue_piece(struct connection *c, int buffer, unsigned length) {
    struct piece *piece = calloc(1, sizeof *piece);
    if (!piece) die("calloc", errno);
    piece->buffer = buffer;
    piece->length = length;
    if (c->first)
        c->last->next = piece;
    else
        c->first = piece;
    c->last = piece;
    if (!c->sending) {
        c->from = 0;
        c->to = length;
        start_send(c);
    }
}

static void received(struct connection *c, struct io_uring_cqe *cqe) {
    if (!(cqe->flags & IORING_CQE_F_MORE)) c->receiving = 0;
    if (cqe->res > 0 && mode == MULTISHOT) {
        if (!(cqe->flags & IORING_CQE_F_BUFFER)) die("recv without a buffer", EPROTO);
        queue_piece(c, cqe->flags >> IORING_CQE_BUFFER_SHIFT, cqe->res);
        if (!c->receiving) start_recv(c);
    } else if (cqe->res > 0) {
        c->from = 0;
        c->to = cqe->res;
        start_send(c);
    } else if (cqe->res == -ENOBUFS && mode == MULTISHOT) {
        c->starved = 1;
        starving++;
    } else {
        if (cqe->res < 0 && cqe->res != -ECONNRESET) die("recv", -cqe->res);
        if (!c->sending) shutdown(c->fd, SHUT_WR);
        c->ended = 1;
    }
}

static void sent(struct connection *c, struct io_uring_cqe *cqe) {
    if (cqe->flags & IORING_CQE_F_NOTIF) {
        c->notifications--;
    } else {
        c->sending = 0;
        if (cqe->flags & IORING_CQE_F_MORE) c->notifications++;
        if (cqe->res < 0) {
            if (cqe->res != -ECONNRESET && cqe->res != -EPIPE) die("send", -cqe->res);
            c->ended = 1;
            shutdown(c->fd, SHUT_RDWR); /* ends a recv that is armed */
            return;
        }
        c->from += cqe->res;
    }
    if (c->sending || c->notifications || (c->ended && mode != MULTISHOT)) return;
    if (c->from < c->to) {
        start_send(c);
    } else if (mode != MULTISHOT) {
        start_recv(c);
    } else if (c->first) {
        struct piece *piece = c->first;
        int buffer = piece->buffer;
        c->first = piece->next;
        free(piece);
        if (c->first) {
            c->from = 0;
            c->to = c->first->length;
            start_send(c);
        }
        give_back(buffer);
    }
}

static void handle(struct io_uring_cqe *cqe) {
    enum kind kind = cqe->user_data & 0xff;
    int fd = (int)(cqe->user_data >> 8);
    if (kind == ACCEPT) {
        if (cqe->res >= 0)
            accepted(cqe->res);
        else if (cqe->res != -ECONNABORTED)
            die("accept", -cqe->res);
        if (!(cqe->flags & IORING_CQE_F_MORE)) start_accept();
        return;
    }
    struct connection *c = connections[fd];
    if (!c) die("an event of a connection that is gone", EPROTO);
    if (kind == RECV)
        received(c, cqe);
    else
        sent(c, cqe);
    settle(c);
}

static void set_up_buffers(void) {
    struct io_uring_buf_reg reg = {.ring_entries = BUFFERS, .bgid = GROUP};
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, BUFFERS * sizeof(struct io_uring_buf))) die("memory", ENOMEM);
    if (!(pool = malloc((size_t)BUFFERS * BUFFER_BYTES))) die("memory", ENOMEM);
    reg.ring_addr = (unsigned long)memory;
    buffers = memory;
    io_uring_buf_ring_init(buffers);
    int error = io_uring_register_buf_ring(&ring, &reg, 0);
    if (error) die("register_buf_ring", -error);
    for (int i = 0; i < BUFFERS; i++) give_back(i);
}

static void listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (void *)&address, length) || listen(listener, 1024) ||
        getsockname(listener, (void *)&address, &length))
        die("listen", errno);
    printf("listening %u\n", ntohs(address.sin_port));
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *wanted = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_handler = on_term};
    if (!strcmp(wanted, "multishot"))
        mode = MULTISHOT;
    else if (!strcmp(wanted, "zerocopy"))
        mode = ZEROCOPY;
    else if (strcmp(wanted, "plain"))
        die("usage: echo plain|multishot|zerocopy", EINVAL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    int error = io_uring_queue_init(ENTRIES, &ring, 0);
    if (error) die("io_uring_queue_init", -error);
    if (mode == MULTISHOT) set_up_buffers();
    listen_on_loopback();
    start_accept();
    while (!stopped) {
        struct io_uring_cqe *cqe;
        unsigned head, count = 0;
        int done = io_uring_submit_and_wait(&ring, 1);
        if (done < 0 && done != -EINTR) die("submit_and_wait", -done);
        io_uring_for_each_cqe(&ring, head, cqe) {
            handle(cqe);
            count++;
        }
        io_uring_cq_advance(&ring, count);
    }
    io_uring_queue_exit(&ring);
    return 0;
}
