//! Constants, sets of flags, and what the types that are not entries do: the same expressions on
//! both crates, whose results are compared as text.

/// The lines, by this crate.
macro_rules! values {
    ($uring:ident) => {{
        use $uring::{cqueue, opcode, register, squeue, types, EnterFlags, Parameters, Probe};
        let mut lines: Vec<String> = Vec::new();
        macro_rules! line {
            ($expr:expr) => {
                lines.push(format!("{} = {:?}", stringify!($expr), $expr));
            };
        }

        line!(squeue::Flags::IO_DRAIN.bits());
        line!(squeue::Flags::IO_LINK.bits());
        line!(squeue::Flags::IO_HARDLINK.bits());
        line!(squeue::Flags::ASYNC.bits());
        line!(squeue::Flags::BUFFER_SELECT.bits());
        line!(squeue::Flags::SKIP_SUCCESS.bits());
        line!(squeue::Flags::all().bits());
        line!(squeue::Flags::all().iter_names().map(|(name, _)| name).collect::<Vec<_>>());
        line!(types::TimeoutFlags::ABS.bits());
        line!(types::TimeoutFlags::BOOTTIME.bits());
        line!(types::TimeoutFlags::REALTIME.bits());
        line!(types::TimeoutFlags::LINK_TIMEOUT_UPDATE.bits());
        line!(types::TimeoutFlags::ETIME_SUCCESS.bits());
        line!(types::TimeoutFlags::MULTISHOT.bits());
        line!(types::TimeoutFlags::all().bits());
        line!(types::FsyncFlags::DATASYNC.bits());
        line!(types::FsyncFlags::all().bits());
        line!(types::CloneBuffersFlags::SRC_REGISTERED.bits());
        line!(types::CloneBuffersFlags::DST_REPLACE.bits());
        line!(types::CloneBuffersFlags::all().bits());
        line!(EnterFlags::GETEVENTS.bits());
        line!(EnterFlags::SQ_WAKEUP.bits());
        line!(EnterFlags::SQ_WAIT.bits());
        line!(EnterFlags::EXT_ARG.bits());
        line!(EnterFlags::REGISTERED_RING.bits());
        line!(EnterFlags::ABS_TIMER.bits());
        line!(EnterFlags::EXT_ARG_REG.bits());
        line!(EnterFlags::NO_IOWAIT.bits());
        line!(EnterFlags::all().bits());
        line!(register::SKIP_FILE);
        line!(types::IORING_MEM_REGION_TYPE_USER);
        line!(types::IORING_ZCRX_AREA_SHIFT);
        line!(types::IORING_ZCRX_AREA_MASK);
        line!(types::IOU_PBUF_RING_INC);
        line!(types::IOU_PBUF_RING_MMAP);
        line!(<squeue::Entry as squeue::EntryMarker>::BUILD_FLAGS);
        line!(<squeue::Entry128 as squeue::EntryMarker>::BUILD_FLAGS);
        line!(<cqueue::Entry as cqueue::EntryMarker>::BUILD_FLAGS);
        line!(<cqueue::Entry32 as cqueue::EntryMarker>::BUILD_FLAGS);

        // What bitflags gives to a set.
        line!({
            let mut set = squeue::Flags::empty();
            set.insert(squeue::Flags::IO_LINK | squeue::Flags::ASYNC);
            set.toggle(squeue::Flags::IO_DRAIN);
            set.set(squeue::Flags::SKIP_SUCCESS, true);
            set.remove(squeue::Flags::ASYNC);
            set -= squeue::Flags::IO_DRAIN;
            (set.bits(), set.is_empty(), set.is_all(), set > squeue::Flags::empty(), !set)
        });
        line!(squeue::Flags::from_bits(0xff));
        line!(squeue::Flags::from_bits_truncate(0xff));
        line!(squeue::Flags::from_bits_retain(0x81).bits());
        line!(squeue::Flags::from_name("IO_LINK"));
        line!(types::TimeoutFlags::all().iter_names().map(|(name, _)| name).collect::<Vec<_>>());
        line!([types::FsyncFlags::DATASYNC].into_iter().collect::<types::FsyncFlags>());
        line!(format!("{:x} {:b}", EnterFlags::ABS_TIMER, EnterFlags::ABS_TIMER));
        line!(types::CloneBuffersFlags::all() & types::CloneBuffersFlags::DST_REPLACE);

        // Sizes: casts between pointers of both crates and the C library rely on them.
        line!(size_of::<types::OpenHow>());
        line!(size_of::<types::Timespec>());
        line!(size_of::<types::SubmitArgs>());
        line!(size_of::<types::BufRingEntry>());
        line!(size_of::<types::FutexWaitV>());
        line!(size_of::<types::Napi>());
        line!(size_of::<types::Fd>());
        line!(size_of::<types::Fixed>());
        line!(size_of::<types::RwFlags>());
        line!(size_of::<types::io_uring_region_desc>());
        line!(size_of::<types::io_uring_zcrx_area_reg>());
        line!(size_of::<types::io_uring_zcrx_cqe>());
        line!(size_of::<types::io_uring_zcrx_ifq_reg>());
        line!(size_of::<types::io_uring_zcrx_rqe>());
        line!(size_of::<register::Restriction>());
        line!(size_of::<Option<types::DestinationSlot>>());
        line!(size_of::<Parameters>());
        line!(size_of::<cqueue::Entry>());
        line!(size_of::<cqueue::Entry32>());

        line!(raw(types::OpenHow::new().flags(1).mode(2).resolve(3)));
        line!(raw(types::OpenHow::default()));
        line!(raw(types::Timespec::new().sec(5).nsec(6)));
        line!(raw(types::Timespec::from(std::time::Duration::new(7, 8))));
        line!(raw(types::Timespec::default()));
        line!(raw(types::FutexWaitV::new().val(1).uaddr(2).flags(3)));
        line!(raw(types::FutexWaitV::default()));
        line!(raw(types::SubmitArgs::new().min_wait_usec(9)));
        line!({
            let (ts, set) = (TS.get::<types::Timespec>(), &SET.0);
            let args = types::SubmitArgs::new().timespec(ts).sigmask(set);
            let base = std::ptr::from_ref(ts) as u64;
            let words = raw(args);
            let word = |i: usize| u64::from_ne_bytes(words[i..i + 8].try_into().unwrap());
            // The size between the two differs on purpose: io-uring gives that of the C library's
            // set, which the kernel refuses.
            (word(0) == std::ptr::from_ref(set) as u64, word(16) == base)
        });
        line!(raw(register::Restriction::register_op(7)));
        line!(raw(register::Restriction::sqe_op(7)));
        line!(raw(register::Restriction::sqe_flags_allowed(7)));
        line!(raw(register::Restriction::sqe_flags_required(7)));
        for tracking in [
            types::NapiTracking::Dynamic,
            types::NapiTracking::Static,
            types::NapiTracking::Inactive,
        ] {
            let napi = types::Napi::new()
                .set_busy_poll_timeout(60)
                .set_prefer_busy_poll(true)
                .set_tracking(tracking);
            line!((napi.busy_poll_timeout(), napi.prefer_busy_poll(), tracking, raw(napi)));
        }
        line!(types::DestinationSlot::try_from_slot_target(0).is_ok());
        line!(types::DestinationSlot::try_from_slot_target(u32::MAX - 2).is_ok());
        line!(types::DestinationSlot::try_from_slot_target(u32::MAX - 1).unwrap_err());
        line!(types::DestinationSlot::try_from_slot_target(u32::MAX).unwrap_err());
        line!({
            // SAFETY: plain integers.
            let mut entry: types::BufRingEntry = unsafe { std::mem::zeroed() };
            entry.set_addr(1);
            entry.set_len(2);
            entry.set_bid(3);
            // SAFETY: an entry.
            let tail = unsafe { types::BufRingEntry::tail(&entry) };
            let offset = tail as usize - std::ptr::from_ref(&entry) as usize;
            (entry.addr(), entry.len(), entry.bid(), offset, raw(entry))
        });
        for flags in [0, 1, 2, 4, 8, 16, 0x0007_0001, u32::MAX] {
            line!((
                cqueue::buffer_more(flags),
                cqueue::buffer_select(flags),
                cqueue::more(flags),
                cqueue::sock_nonempty(flags),
                cqueue::notif(flags),
            ));
        }
        line!(Probe::default().is_supported(opcode::Read::CODE));
        line!({
            use squeue::Flags;
            let entry = opcode::Nop::new().build().flags(Flags::ASYNC).flags(Flags::IO_LINK);
            let entry = entry.user_data(77).personality(88);
            let large = squeue::Entry128::from(entry.clone()).flags(Flags::IO_DRAIN);
            let mut other = entry.clone().clear_flags();
            other.set_user_data(99);
            let mut large_other = large.clone().clear_flags().user_data(5).personality(6);
            large_other.set_user_data(7);
            (
                entry.get_user_data(),
                entry.get_opcode(),
                large_other.get_user_data(),
                large_other.get_opcode(),
                [raw(entry), raw(other), raw(large), raw(large_other)],
            )
        });
        recvmsg!(types, lines);
        lines
    }};
}

/// Buffers of a multishot `recvmsg`: whole, truncated, too short.
macro_rules! recvmsg {
    ($types:ident, $lines:ident) => {
        for (name_room, control_room, head) in [
            (8, 16, [4u32, 16, 5, 3]),
            (2, 0, [16, 24, 5, 0]),
            (8, 16, [0, 0, 500, 0x28]),
            (60, 60, [0; 4]),
        ] {
            let mut buffer: Vec<u8> = head.iter().flat_map(|word| word.to_ne_bytes()).collect();
            buffer.extend(1..100);
            // SAFETY: plain integers and pointers.
            let mut msghdr: libc::msghdr = unsafe { std::mem::zeroed() };
            msghdr.msg_namelen = name_room;
            msghdr.msg_controllen = control_room;
            for len in [0, 15, 16, 20, 40, buffer.len()] {
                let parsed = $types::RecvMsgOut::parse(&buffer[..len], &msghdr).map(|out| {
                    let lens = [
                        out.incoming_name_len(),
                        out.incoming_control_len(),
                        out.incoming_payload_len(),
                        out.flags(),
                    ];
                    let truncated = [
                        out.is_name_data_truncated(),
                        out.is_control_data_truncated(),
                        out.is_payload_truncated(),
                    ];
                    let data = [out.name_data(), out.control_data(), out.payload_data()]
                        .map(<[u8]>::to_vec);
                    (lens, truncated, data)
                });
                $lines.push(format!("recvmsg {head:?} in {len}: {parsed:?}"));
            }
        }
    };
}

/// The bytes of a value.
fn raw<T>(value: T) -> Vec<u8> {
    // SAFETY: only used for types that are plain integers without padding.
    unsafe { std::slice::from_raw_parts((&raw const value).cast(), size_of::<T>()) }.to_vec()
}

/// Zeroes to refer to, the same place for both crates.
static TS: Zeroes = Zeroes([0; 2]);
struct Zeroes([u64; 2]);
impl Zeroes {
    fn get<T>(&self) -> &T {
        assert_eq!((size_of::<T>(), align_of::<T>()), (16, 8));
        // SAFETY: a T is 16 bytes of integers.
        unsafe { &*(&raw const self.0).cast() }
    }
}

static SET: Set = Set(
    // SAFETY: integers.
    unsafe { std::mem::zeroed() },
);
struct Set(libc::sigset_t);

/// By anyring.
pub fn ours() -> Vec<String> {
    values!(anyring)
}

/// By io-uring.
#[allow(deprecated)]
pub fn theirs() -> Vec<String> {
    values!(io_uring)
}
