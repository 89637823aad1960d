//! Every operation with every one of its setters, written once and built by both crates.

use std::mem::{size_of_val, ManuallyDrop};

/// A label, and the entry's bytes.
pub type Case = (String, Vec<u8>);

/// A recognisable pointer.
fn at<T>(n: usize) -> *mut T {
    (0x5000_0000_0000 + 0x1_0001 * n) as *mut T
}

/// Recognisable data.
fn data<const N: usize>() -> [u8; N] {
    std::array::from_fn(|i| i as u8 + 1)
}

/// The bytes of an entry.
fn bytes<T>(entry: T) -> Vec<u8> {
    let entry = ManuallyDrop::new(entry);
    // SAFETY: entries are plain integers without padding.
    unsafe { std::slice::from_raw_parts((&raw const entry).cast(), size_of_val(&entry)) }.to_vec()
}

/// `op!(list, Name(arguments of new); setter(value), ...)`: the operation with nothing set, with each
/// setter alone, and with all of them, and its number.
macro_rules! op {
    ($all:ident, $name:ident $args:tt $(; $($setter:ident $value:tt),+)?) => {
        let label = |what: &str| format!("{} {what}", stringify!($name));
        $all.push((label("CODE"), vec![opcode::$name::CODE]));
        $all.push((label("new"), bytes(opcode::$name::new $args.build())));
        $(
            $($all.push((
                label(stringify!($setter)),
                bytes(opcode::$name::new $args.$setter $value.build()),
            ));)+
            $all.push((label("all"), op!(@all opcode::$name::new $args; $($setter $value)+)));
        )?
    };
    (@all $built:expr; $setter:ident $value:tt $($rest:tt)*) => {
        op!(@all $built.$setter $value; $($rest)*)
    };
    (@all $built:expr;) => {
        bytes($built.build())
    };
}

/// The list, by this crate, with this value where a file or a slot goes.
macro_rules! sqes {
    ($uring:ident, $file:expr) => {{
        use $uring::{opcode, types::*};
        let slot = |n| DestinationSlot::try_from_slot_target(n).unwrap();
        let mut all: Vec<Case> = Vec::new();
        op!(all, Nop());
        op!(
            all,
            Readv($file, at(1), 0x1234_5602);
            ioprio(0x1103), offset(0x1234_5678_9abc_d004), rw_flags(0x1234_5605),
            buf_group(0x1106)
        );
        op!(
            all,
            Writev($file, at(1), 0x1234_5602);
            ioprio(0x1103), offset(0x1234_5678_9abc_d004), rw_flags(0x1234_5605),
            write_stream(0x5a)
        );
        op!(
            all,
            Fsync($file);
            offset(0x1234_5678_9abc_d001), len(0x1234_5602), flags(FsyncFlags::DATASYNC)
        );
        op!(
            all,
            ReadFixed($file, at(1), 0x1234_5602, 0x1103);
            ioprio(0x1104), offset(0x1234_5678_9abc_d005), rw_flags(0x1234_5606)
        );
        op!(
            all,
            WriteFixed($file, at(1), 0x1234_5602, 0x1103);
            ioprio(0x1104), offset(0x1234_5678_9abc_d005), rw_flags(0x1234_5606),
            write_stream(0x5a)
        );
        op!(all, PollAdd($file, 0x1234_5601); multi(true));
        op!(all, PollRemove(0x1234_5678_9abc_d001));
        op!(
            all,
            SyncFileRange($file, 0x1234_5601);
            offset(0x1234_5678_9abc_d002), flags(0x1234_5603)
        );
        op!(all, SendMsg($file, at(1)); ioprio(0x1102), flags(0x1234_5603));
        op!(all, RecvMsg($file, at(1)); ioprio(0x1102), flags(0x1234_5603), buf_group(0x1104));
        op!(all, RecvMsgMulti($file, at(1), 0x1102); ioprio(0x1103), flags(0x1234_5604));
        op!(all, Timeout(at(1)); count(0x1234_5602), flags(TimeoutFlags::all()));
        op!(all, TimeoutRemove(0x1234_5678_9abc_d001));
        op!(all, TimeoutUpdate(0x1234_5678_9abc_d001, at(2)); flags(TimeoutFlags::all()));
        op!(all, Accept($file, at(1), at(2)); file_index(Some(slot(5))), flags(0x1234_5603));
        op!(
            all,
            SetSockOpt($file, 0x1234_5601, 0x1234_5602, at(3), 0x1234_5604);
            flags(0x1234_5605)
        );
        op!(
            all,
            GetSockOpt($file, 0x1234_5601, 0x1234_5602, at(3), 0x1234_5604);
            flags(0x1234_5605)
        );
        op!(all, AsyncCancel(0x1234_5678_9abc_d001));
        op!(all, LinkTimeout(at(1)); flags(TimeoutFlags::all()));
        op!(all, Connect($file, at(1), 16));
        op!(
            all,
            Fallocate($file, 0x1234_5678_9abc_d001);
            offset(0x1234_5678_9abc_d002), mode(0x1234_5603)
        );
        op!(
            all,
            OpenAt(Fd(4), at(1));
            file_index(Some(slot(5))), flags(0x1234_5602), mode(0o644)
        );
        op!(all, Close($file));
        op!(all, FilesUpdate(at(1), 0x1234_5602); offset(0x1234_5603));
        op!(all, Statx(Fd(4), at(1), at(2)); flags(0x1234_5603), mask(0x1234_5604));
        op!(
            all,
            Read($file, at(1), 0x1234_5602);
            offset(0x1234_5678_9abc_d003), ioprio(0x1104), rw_flags(0x1234_5605),
            buf_group(0x1106)
        );
        op!(
            all,
            Write($file, at(1), 0x1234_5602);
            offset(0x1234_5678_9abc_d003), ioprio(0x1104), rw_flags(0x1234_5605),
            write_stream(0x5a)
        );
        op!(all, Fadvise($file, 0x1234_5601, 0x1234_5602); offset(0x1234_5678_9abc_d003));
        op!(all, Madvise(at(1), 0x1234_5602, 0x1234_5603));
        op!(
            all,
            Send($file, at(1), 0x1234_5602);
            ioprio(0x1103), flags(0x1234_5604), buf_group(0x1105), dest_addr(at(6)),
            dest_addr_len(16)
        );
        op!(
            all,
            Recv($file, at(1), 0x1234_5602);
            ioprio(0x1103), flags(0x1234_5604), buf_group(0x1105)
        );
        op!(all, RecvMulti($file, 0x1101); flags(0x1234_5602), len(0x1234_5603));
        op!(all, OpenAt2(Fd(4), at(1), at(2)); file_index(Some(slot(5))));
        op!(all, EpollCtl($file, Fd(4), 0x1234_5601, at(2)));
        op!(all, Splice($file, -5, $file, -5, 0x1234_5601); flags(0x1234_5602));
        op!(all, ProvideBuffers(at(1), 0x1234_5602, 0x1103, 0x1104, 0x1105));
        op!(all, RemoveBuffers(0x1101, 0x1102));
        op!(all, Tee($file, $file, 0x1234_5601); flags(0x1234_5602));
        op!(all, Shutdown($file, 0x1234_5601));
        op!(all, RenameAt(Fd(4), at(1), Fd(4), at(2)); flags(0x1234_5603));
        op!(all, UnlinkAt(Fd(4), at(1)); flags(0x1234_5602));
        op!(all, MkDirAt(Fd(4), at(1)); mode(0o644));
        op!(all, SymlinkAt(Fd(4), at(1), at(2)));
        op!(all, LinkAt(Fd(4), at(1), Fd(4), at(2)); flags(0x1234_5603));
        op!(all, GetXattr(at(1), at(2), at(3), 0x1234_5604));
        op!(all, SetXattr(at(1), at(2), at(3), 0x1234_5604); flags(0x1234_5605));
        op!(all, FGetXattr($file, at(1), at(2), 0x1234_5603));
        op!(all, FSetXattr($file, at(1), at(2), 0x1234_5603); flags(0x1234_5604));
        op!(
            all,
            MsgRingData(Fd(4), 0x1234_5601, 0x1234_5678_9abc_d002, Some(99));
            opcode_flags(0x1234_5603)
        );
        op!(all, AsyncCancel2(CancelBuilder::any()));
        op!(
            all,
            UringCmd16($file, 0x1234_5601);
            buf_index(Some(0x1102)), cmd(data()), addr(Some(77))
        );
        op!(
            all,
            UringCmd80($file, 0x1234_5601);
            buf_index(Some(0x1102)), cmd(data()), addr(Some(77))
        );
        op!(
            all,
            Socket(0x1234_5601, 0x1234_5602, 0x1234_5603);
            file_index(Some(slot(5))), flags(0x1234_5604)
        );
        op!(all, AcceptMulti($file); allocate_file_index(true), flags(0x1234_5601));
        op!(
            all,
            MsgRingSendFd(Fd(4), Fixed(6), slot(5), 0x1234_5678_9abc_d001);
            opcode_flags(0x1234_5602)
        );
        op!(
            all,
            SendZc($file, at(1), 0x1234_5602);
            buf_index(Some(0x1103)), dest_addr(at(4)), dest_addr_len(16), flags(0x1234_5605),
            zc_flags(0x1106)
        );
        op!(
            all,
            SendMsgZc($file, at(1));
            ioprio(0x1102), flags(0x1234_5603), buf_index(Some(0x1104))
        );
        op!(all, ReadMulti($file, 0x1234_5601, 0x1102); offset(0x1234_5678_9abc_d003));
        op!(
            all,
            FutexWait(at(1), 0x1234_5678_9abc_d002, 0x1234_5678_9abc_d003, 0x1234_5604);
            flags(0x1234_5605)
        );
        op!(
            all,
            FutexWake(at(1), 0x1234_5678_9abc_d002, 0x1234_5678_9abc_d003, 0x1234_5604);
            flags(0x1234_5605)
        );
        op!(all, FutexWaitV(at(1), 0x1234_5602); flags(0x1234_5603));
        op!(all, WaitId(2, 77, 7); infop(at(1)), flags(9));
        op!(all, FixedFdInstall(Fixed(6), 0x1234_5601));
        op!(all, Ftruncate($file, 0x1234_5678_9abc_d001));
        op!(all, SendBundle($file, 0x1101); flags(0x1234_5602), len(0x1234_5603));
        op!(all, RecvBundle($file, 0x1101); flags(0x1234_5602));
        op!(all, RecvMultiBundle($file, 0x1101); flags(0x1234_5602));
        op!(all, Bind($file, at(1), 16));
        op!(all, Listen($file, 0x1234_5601));
        op!(all, RecvZc($file, 0x1234_5601); ifq(0x1234_5602), ioprio(0x1103));
        op!(all, EpollWait($file, at(1), 0x1234_5602); flags(0x1234_5603));
        op!(
            all,
            ReadvFixed($file, at(1), 0x1234_5602, 0x1103);
            ioprio(0x1104), offset(0x1234_5678_9abc_d005), rw_flags(0x1234_5606)
        );
        op!(
            all,
            WritevFixed($file, at(1), 0x1234_5602, 0x1103);
            ioprio(0x1104), offset(0x1234_5678_9abc_d005), rw_flags(0x1234_5606),
            write_stream(0x5a)
        );
        op!(all, Pipe(at(1)); flags(0x1234_5602), file_index(Some(slot(5))));
        op!(all, AsyncCancel2(CancelBuilder::user_data(42)));
        op!(all, AsyncCancel2(CancelBuilder::user_data(42).all()));
        op!(all, AsyncCancel2(CancelBuilder::fd($file)));
        op!(all, AsyncCancel2(CancelBuilder::fd($file).all()));
        op!(all, AsyncCancel2(CancelBuilder::any().all()));
        op!(all, PollAdd($file, 1); multi(false));
        op!(all, TimeoutUpdate(1, at(2)); flags(TimeoutFlags::empty()));
        op!(all, Timeout(at(1)); flags(TimeoutFlags::MULTISHOT));
        op!(all, Fsync($file); flags(FsyncFlags::empty()));
        op!(all, Accept($file, at(1), at(2)); file_index(Some(DestinationSlot::auto_target())));
        op!(all, Accept($file, at(1), at(2)); file_index(None));
        op!(all, OpenAt(Fd(4), at(1)); file_index(Some(DestinationSlot::auto_target())));
        op!(all, OpenAt2(Fd(4), at(1), at(2)); file_index(Some(slot(0))), file_index(None));
        op!(all, Socket(1, 2, 3); file_index(Some(DestinationSlot::auto_target())));
        op!(all, AcceptMulti($file); allocate_file_index(false));
        op!(all, MsgRingData(Fd(4), -1, 2, None); opcode_flags(1));
        op!(all, MsgRingSendFd(Fd(4), Fixed(6), DestinationSlot::auto_target(), 3));
        op!(all, FilesUpdate(at(1), 2); offset(-1));
        op!(all, Fallocate($file, 1); mode(-1));
        op!(all, Fadvise($file, -1, 2));
        op!(all, Madvise(at(1), -1, 2));
        op!(all, ProvideBuffers(at(1), -1, 2, 3, 4));
        op!(all, Splice($file, i64::MIN, $file, i64::MAX, 3); flags(0));
        op!(all, Tee($file, $file, 3); flags(1 << 31));
        op!(all, SendZc($file, at(1), 2); zc_flags(8), buf_index(Some(5)));
        op!(all, SendZc($file, at(1), 2); buf_index(Some(5)), buf_index(None));
        op!(all, SendMsgZc($file, at(1)); buf_index(Some(5)), ioprio(8));
        op!(all, SendMsgZc($file, at(1)); buf_index(Some(5)), buf_index(None));
        op!(all, RecvMsgMulti($file, at(1), 2); ioprio(0));
        op!(all, RecvZc($file, 1); ioprio(0));
        op!(all, UringCmd16($file, 1); buf_index(Some(5)), buf_index(None), addr(None));
        op!(all, UringCmd80($file, 1); buf_index(Some(5)), buf_index(None), addr(None));
        op!(all, Send($file, at(1), 2); dest_addr_len(0x1_0010));
        op!(all, Pipe(at(1)); file_index(Some(DestinationSlot::auto_target())));
        all
    }};
}

/// By anyring.
pub fn ours() -> [Vec<Case>; 2] {
    [sqes!(anyring, Fd(3)), sqes!(anyring, Fixed(9))]
}

/// By io-uring.
pub fn theirs() -> [Vec<Case>; 2] {
    [sqes!(io_uring, Fd(3)), sqes!(io_uring, Fixed(9))]
}
