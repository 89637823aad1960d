//! Preload front door.
