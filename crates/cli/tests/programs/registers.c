/* Makes io_uring_enter calls at one site until it is rewritten, and checks that a call keeps all
 * a system call keeps: registers, vector registers, flags, the red zone, errno. With an argument,
 * that many threads run the site from the start. Prints "ok" and the answer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
	uint64_t rbx, rdx, rsi, rdi, r8, r9, r10, r12, r13, r14, r15, flags, red[4];
	unsigned char ymm[16][32] __attribute__((aligned(32)));
};

/* long probe(struct state *in_out, int avx): loads the state, calls, stores the state. */
long probe(struct state *state, long avx);
asm(".text\n"
    ".globl probe\n"
    "probe:\n"
    "push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "push %rsi; push %rdi\n"
    "mov %rdi,%rbp\n"
    "test %rsi,%rsi; jz 1f\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "vmovups 128+32*\\n(%rbp),%ymm\\n\n"
    ".endr\n"
    "jmp 2f\n"
    "1:\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "movups 128+32*\\n(%rbp),%xmm\\n\n"
    ".endr\n"
    "2:\n"
    "mov 0(%rbp),%rbx; mov 8(%rbp),%rdx; mov 16(%rbp),%rsi; mov 24(%rbp),%rdi\n"
    "mov 32(%rbp),%r8; mov 40(%rbp),%r9; mov 48(%rbp),%r10; mov 56(%rbp),%r12\n"
    "mov 64(%rbp),%r13; mov 72(%rbp),%r14; mov 80(%rbp),%r15\n"
    "mov 96(%rbp),%rax; mov %rax,-8(%rsp); mov 104(%rbp),%rax; mov %rax,-64(%rsp)\n"
    "mov 112(%rbp),%rax; mov %rax,-120(%rsp); mov 120(%rbp),%rax; mov %rax,-128(%rsp)\n"
    /* Flags through a scratch place above: the red zone is in use. */
    "cmp $0,%rsp; stc\n"
    ".balign 64\n"
    "mov $426,%eax\n"
    "syscall\n"
    /* lea and mov leave the flags alone. */
    "mov %rbx,0(%rbp); mov %rdx,8(%rbp); mov %rsi,16(%rbp); mov %rdi,24(%rbp)\n"
    "mov %r8,32(%rbp); mov %r9,40(%rbp); mov %r10,48(%rbp); mov %r12,56(%rbp)\n"
    "mov %r13,64(%rbp); mov %r14,72(%rbp); mov %r15,80(%rbp)\n"
    "mov -8(%rsp),%rcx; mov %rcx,96(%rbp); mov -64(%rsp),%rcx; mov %rcx,104(%rbp)\n"
    "mov -120(%rsp),%rcx; mov %rcx,112(%rbp); mov -128(%rsp),%rcx; mov %rcx,120(%rbp)\n"
    "mov $0,%ecx; adc $0,%rcx; mov %rcx,88(%rbp)\n"
    "mov %rbp,%rdi\n"
    "mov 8(%rsp),%rsi\n"
    "test %rsi,%rsi; jz 3f\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "vmovups %ymm\\n,128+32*\\n(%rbp)\n"
    ".endr\n"
    "vzeroupper\n"
    "jmp 4f\n"
    "3:\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "movups %xmm\\n,128+32*\\n(%rbp)\n"
    ".endr\n"
    "4:\n"
    "pop %rdi; pop %rsi\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
    "ret\n");

static void *run(void *answer)
{
	long avx = __builtin_cpu_supports("avx");
	for (int i = 0; i < 2000; i++) {
		struct state before, after;
		memset(&before, i, sizeof(before));
		for (size_t b = 0; b < sizeof(before); b++)
			((unsigned char *)&before)[b] = b * 7 + i;
		if (!avx)
			for (int n = 0; n < 16; n++)
				memset(before.ymm[n] + 16, 0, 16);
		before.rdi = -1;             /* no descriptor */
		before.r10 = before.rsi = 0; /* no flags, nothing to submit */
		before.flags = 1;            /* carry */
		after = before;
		errno = 77;
		long ret = probe(&after, avx);
		if (memcmp(&before, &after, sizeof(before)) != 0 || errno != 77) {
			printf("changed in round %d\n", i);
			exit(1);
		}
		if (i > 0 && ret != *(long *)answer) {
			printf("round %d: %ld, not %ld\n", i, ret, *(long *)answer);
			exit(1);
		}
		*(long *)answer = ret;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long answers[64], count = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[64];
	for (long i = 1; i < count; i++)
		pthread_create(&threads[i], NULL, run, &answers[i]);
	run(&answers[0]);
	for (long i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("ok %ld\n", answers[count - 1]);
	return 0;
}
