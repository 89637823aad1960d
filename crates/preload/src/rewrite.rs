//! Rewrites hot io_uring_enter sites, so that they call the engine without a trap.
//!
//! A trap costs about 3 µs, a call with two changes of the signal mask a fifth of that. liburing
//! and those who copied it compile to `mov $426,%eax; syscall`. The first of these is five bytes,
//! as long as a jump: only it is replaced, and the `syscall` stays, so that whoever jumps to it
//! directly, or was between the two instructions, is trapped as before. The jump leads to a stub
//! nearby that calls [`enter_site`] and continues behind the `syscall`. A `syscall` instruction
//! keeps all registers but rax, rcx and r11, vector registers included, so the stub does.
//!
//! Rewritten are private, executable, not writable mappings only; a page is made writable for one
//! store and back. Where that is refused (SELinux, systemd's MemoryDenyWriteExecute), the site
//! goes on trapping. Other threads may be executing the very instruction: the store is one of
//! eight bytes within a cache line, which they see whole or not at all; sites that cross a line
//! are left alone.

use crate::{maps, rings, sys};
use core::arch::{naked_asm, x86_64};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};

/// A site is rewritten at this trap; most sites are run once or always.
const HOT: u32 = 8;
/// Sites that are counted.
const SITES: usize = 64;
/// `mov $426,%eax`
const LOAD: [u8; 5] = [0xb8, 0xaa, 0x01, 0x00, 0x00];
/// `syscall`
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const SITE_LEN: usize = LOAD.len() + SYSCALL.len();
const LINE: usize = 64;
const PAGE: usize = 4096;
const RX: usize = (libc::PROT_READ | libc::PROT_EXEC) as usize;
const RWX: usize = RX | libc::PROT_WRITE as usize;

/// A counted site: the address behind its `syscall`, and its traps.
struct Site {
    behind: AtomicUsize,
    traps: AtomicU32,
}

static COUNTED: [Site; SITES] =
    [const { Site { behind: AtomicUsize::new(0), traps: AtomicU32::new(0) } }; SITES];
static ENABLED: AtomicBool = AtomicBool::new(false);
/// Somebody is rewriting. Not a lock: a child forked meanwhile could wait for ever.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The stub page last mapped, and how much of it is used.
static STUBS: AtomicUsize = AtomicUsize::new(0);
static STUBS_USED: AtomicUsize = AtomicUsize::new(0);

/// From now on hot sites are rewritten. Called by the constructor.
pub fn enable() {
    const OSXSAVE: u32 = 1 << 27;
    let has_xsave = x86_64::__cpuid(1).ecx & OSXSAVE != 0;
    ENABLED.store(has_xsave, Relaxed);
}

/// An io_uring_enter trapped; `behind` is the address behind its `syscall`.
pub fn count(behind: usize) {
    if !ENABLED.load(Relaxed) {
        return;
    }
    for site in &COUNTED {
        let known = site.behind.compare_exchange(0, behind, Relaxed, Relaxed).unwrap_or_else(|b| b);
        if known == 0 || known == behind {
            let traps = site.traps.fetch_add(1, Relaxed) + 1;
            // Tried again at ever longer distances: another thread may have been busy here.
            if traps >= HOT && traps.is_power_of_two() && !BUSY.swap(true, Acquire) {
                rewrite(behind - SITE_LEN);
                BUSY.store(false, Release);
            }
            return;
        }
    }
}

/// Rewrites the site at `at`, if it is as expected.
fn rewrite(at: usize) -> Option<()> {
    let mut code = [0u8; SITE_LEN];
    sys::fetch(at, &mut code).ok()?;
    if code[..LOAD.len()] != LOAD || code[LOAD.len()..] != SYSCALL {
        return None;
    }
    if at % LINE + LOAD.len() > LINE || !maps::is_plain_code(at) {
        return None;
    }
    let stub = make_stub(at)?;
    let mut jump = [0xe9, 0, 0, 0, 0];
    let operand = distance(at + jump.len(), stub)?;
    jump[1..].copy_from_slice(&operand);
    protect(at, RWX)?;
    // A window that contains the five bytes, within the line.
    let window = at.min((at & !(LINE - 1)) + LINE - 8);
    let skip = at - window;
    let mut bytes = read_window(window).to_le_bytes();
    bytes[skip..skip + jump.len()].copy_from_slice(&jump);
    store_window(window, u64::from_le_bytes(bytes));
    protect(at, RX)
}

fn read_window(at: usize) -> u64 {
    // SAFETY: readable code; possibly not aligned.
    unsafe { (at as *const u64).read_unaligned() }
}

/// One store of eight bytes, possibly not aligned but within a cache line. In assembly, since
/// the language's atomics demand alignment.
fn store_window(at: usize, value: u64) {
    // SAFETY: the caller made the place writable, and nobody else writes there.
    unsafe {
        core::arch::asm!("xchg qword ptr [{at}], {value}", at = in(reg) at,
            value = inout(reg) value => _, options(nostack));
    }
}

fn protect(at: usize, protection: usize) -> Option<()> {
    let start = at & !(PAGE - 1);
    // The five bytes do not cross a cache line, so not a page either.
    // SAFETY: only adds or removes write permission on a page of code.
    let ret = unsafe { sys::call6(libc::SYS_mprotect, [start, PAGE, protection, 0, 0, 0]) };
    (ret == 0).then_some(())
}

/// The operand of a jump or call whose end is at `from`.
fn distance(from: usize, to: usize) -> Option<[u8; 4]> {
    i32::try_from(to as i64 - from as i64).ok().map(i32::to_le_bytes)
}

const STUB_LEN: usize = 40;

/// The stub for the site at `at`: steps over the red zone, keeps the flags, calls, and goes back.
fn make_stub(at: usize) -> Option<usize> {
    let stub = room_near(at)?;
    let mut code = [0x90u8; STUB_LEN];
    let mut used = 0;
    let mut emit = |bytes: &[u8]| {
        code[used..used + bytes.len()].copy_from_slice(bytes);
        used += bytes.len();
        used
    };
    emit(&[0x48, 0x8d, 0x64, 0x24, 0x80]); // lea -128(%rsp),%rsp
    emit(&[0x9c]); // pushfq
    emit(&[0x48, 0xb9]); // movabs $save_and_call,%rcx
    emit(&(save_and_call as *const () as usize).to_le_bytes());
    emit(&[0xff, 0xd1]); // call *%rcx
    emit(&[0x9d]); // popfq
    emit(&[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea 128(%rsp),%rsp
    let jump = emit(&[0xe9]); // jmp behind the syscall
    emit(&distance(stub + jump + 4, at + SITE_LEN)?);
    protect(stub, RWX)?;
    // SAFETY: the stub's room is ours, unused, and writable now.
    unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), stub as *mut u8, STUB_LEN) };
    protect(stub, RX)?;
    Some(stub)
}

/// Room for a stub in reach of a jump from `at`.
fn room_near(at: usize) -> Option<usize> {
    let page = STUBS.load(Relaxed);
    let used = STUBS_USED.load(Relaxed);
    if page != 0 && used + STUB_LEN <= PAGE && distance(at, page).is_some() {
        STUBS_USED.store(used + STUB_LEN, Relaxed);
        return Some(page + used);
    }
    let page = map_near(at)?;
    STUBS.store(page, Relaxed);
    STUBS_USED.store(STUB_LEN, Relaxed);
    Some(page)
}

/// Maps a page within 1 GiB of `at`, in steps away from it.
fn map_near(at: usize) -> Option<usize> {
    const STEP: usize = 1 << 20;
    const STEPS: usize = 1 << 10;
    const FIXED_NOREPLACE: usize = 0x10_0000;
    let base = at & !(PAGE - 1);
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize | FIXED_NOREPLACE;
    for step in 1..STEPS {
        for place in [base.checked_sub(step * STEP), base.checked_add(step * STEP)] {
            let Some(place) = place.filter(|&place| place > PAGE) else { continue };
            let args = [place, PAGE, RX, flags, usize::MAX, 0];
            // SAFETY: maps only where nothing is.
            let got = unsafe { sys::call6(libc::SYS_mmap, args) };
            if got == place as isize {
                return Some(place);
            }
            if got > 0 {
                // A kernel that takes the address for a hint.
                // SAFETY: just mapped, used by nobody.
                unsafe { sys::unmap(got as usize, PAGE) };
                return None;
            }
        }
    }
    None
}

/// What a rewritten site calls instead of the kernel; a raw result. errno stays as it is.
unsafe extern "C" fn enter_site(
    a0: usize,
    a1: usize,
    a2: usize,
    a3: usize,
    a4: usize,
    a5: usize,
) -> isize {
    rings::call(anyring_uapi::NR_ENTER, [a0, a1, a2, a3, a4, a5])
}

/// Calls [`enter_site`] with a system call's arguments, and keeps every register that a system
/// call keeps.
#[unsafe(naked)]
unsafe extern "C" fn save_and_call() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push r8",
        "push r9",
        "push r10",
        "cld",
        // SSE, AVX and AVX-512 state: at most 2688 bytes, aligned to 64.
        "sub rsp, 2752",
        "and rsp, -64",
        "xor eax, eax",
        "mov [rsp + 512], rax",
        "mov [rsp + 520], rax",
        "mov [rsp + 528], rax",
        "mov [rsp + 536], rax",
        "mov [rsp + 544], rax",
        "mov [rsp + 552], rax",
        "mov [rsp + 560], rax",
        "mov [rsp + 568], rax",
        "mov r11, rdx",
        "mov eax, 0xe6",
        "xor edx, edx",
        "xsave [rsp]",
        "mov rdx, r11",
        "mov rcx, r10",
        "call {enter}",
        "mov r11, rax",
        "mov eax, 0xe6",
        "xor edx, edx",
        "xrstor [rsp]",
        "mov rax, r11",
        "lea rsp, [rbp - 48]",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "ret",
        enter = sym enter_site,
    )
}
