//! Restrictions: what a ring, once enabled, still allows.

use crate::Errno;
use anyring_uapi::register::{self, Restriction};
use anyring_uapi::{op, Sqe};

const REGISTER_OP: u16 = 0;
const SQE_OP: u16 = 1;
const SQE_FLAGS_ALLOWED: u16 = 2;
const SQE_FLAGS_REQUIRED: u16 = 3;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Restrictions {
    registered: bool,
    active: bool,
    register_ops: u64,
    sqe_ops: u128,
    flags_allowed: u8,
    flags_required: u8,
}

impl Restrictions {
    /// IORING_REGISTER_RESTRICTIONS. EBUSY the second time, EINVAL for an unknown kind or value.
    pub fn register(&mut self, list: &[Restriction]) -> Result<(), Errno> {
        if self.registered {
            return Err(Errno::BUSY);
        }
        let mut new = Restrictions { registered: true, ..Restrictions::default() };
        for r in list {
            match r.opcode {
                REGISTER_OP if (r.value as u32) < register::COUNT => {
                    new.register_ops |= 1 << r.value
                }
                SQE_OP if (r.value as usize) < op::COUNT => new.sqe_ops |= 1 << r.value,
                SQE_FLAGS_ALLOWED => new.flags_allowed = r.value,
                SQE_FLAGS_REQUIRED => new.flags_required = r.value,
                _ => return Err(Errno::INVAL),
            }
        }
        *self = new;
        Ok(())
    }
    /// The ring was enabled.
    pub fn activate(&mut self) {
        self.active = self.registered;
    }
    /// Whether anything is restricted.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active
    }
    /// EACCES if an SQE is not allowed.
    pub fn check_sqe(&self, sqe: &Sqe) -> Result<(), Errno> {
        if !self.active {
            return Ok(());
        }
        let allowed = self.sqe_ops & (1 << sqe.opcode) != 0
            && sqe.flags & self.flags_required == self.flags_required
            && sqe.flags & !(self.flags_allowed | self.flags_required) == 0;
        if allowed {
            Ok(())
        } else {
            Err(Errno::ACCES)
        }
    }
    /// EACCES if a register operation is not allowed.
    pub fn check_register(&self, opcode: u32) -> Result<(), Errno> {
        if self.active && self.register_ops & (1 << opcode) == 0 {
            return Err(Errno::ACCES);
        }
        Ok(())
    }
}
