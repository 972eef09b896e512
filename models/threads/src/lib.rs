//! Known programs with a concurrency bug, each written from what the bug is: classics, those of SCTBench, CHESS's work-stealing queue, and
//! bugs of channels, cells and executors that were found and mended in the Rust world.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

/// The programs on `demi_threads`.
pub mod demi {
    use demi_threads as rt;
    include!("programs.rs");
}

pub mod kinds;

/// The programs on shuttle's own types.
#[cfg(feature = "peers")]
pub mod on_shuttle {
    use shuttle as rt;
    include!("programs.rs");
}

/// The programs on loom's types.
#[cfg(feature = "peers")]
pub mod on_loom {
    use loom as rt;
    include!("programs.rs");
}

/// What is known of a program, and what a search must not exceed.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// The test.
    pub run: fn(),
    /// The fewest preemptions that fail.
    pub preemptions: u32,
    /// The fewest delays that fail, where that is known.
    pub delays: Option<u32>,
    /// Executions to the first failure: by preemptions with the cache, and by delays.
    pub first: (Option<u64>, Option<u64>),
}

macro_rules! known {
    ($($name:literal $run:expr, $c:literal $d:expr, $ipb:expr, $idb:expr;)*) => {
        &[$(Known { name: $name, run: || $run, preemptions: $c, delays: $d, first: ($ipb, $idb) }),*]
    };
}

/// All of them, with the least bounds, and the executions to the first failure that a search must not exceed.
pub const KNOWN: &[Known] = known! {
    "bank" demi::bank(), 1 Some(1), Some(5), Some(8);
    "four_accounts" demi::four_accounts(), 1 Some(1), Some(19), Some(18);
    "buffer_2_2" demi::buffer(2, 2, 1), 0 Some(0), Some(1), Some(1);
    "lost_wake_up" demi::lost_wake_up(), 1 Some(1), Some(4), Some(4);
    "philosophers_3" demi::philosophers(3), 1 Some(2), Some(49), Some(70);
    "philosophers_5" demi::philosophers(5), 1 Some(4), Some(1_106), None;
    "work_stealing" demi::work_stealing(4), 2 Some(2), Some(67), Some(67);
    "aba" demi::aba(), 1 Some(1), Some(5), Some(5);
    "account_bad" demi::account(), 0 Some(1), Some(8), Some(9);
    "lazy01_bad" demi::lazy(), 0 Some(0), Some(1), Some(1);
    "token_ring_bad" demi::token_ring(), 0 Some(2), Some(30), Some(44);
    "deadlock01_bad" demi::deadlock(), 1 Some(1), Some(6), Some(9);
    "carter01_bad" demi::carter(), 1 Some(1), Some(59), Some(18);
    "bluetooth_driver_bad" demi::bluetooth(), 1 Some(1), Some(4), Some(4);
    "stringbuffer" demi::string_buffer(), 1 Some(1), Some(3), Some(3);
    "twostage_bad" demi::two_stage(1), 1 Some(1), Some(13), Some(8);
    "wronglock_3_bad" demi::wrong_lock(3), 1 Some(1), Some(81), Some(18);
    "reorder_3_bad" demi::reorder(2), 1 Some(2), Some(22), Some(33);
    "reorder_4_bad" demi::reorder(3), 1 Some(3), Some(154), Some(161);
    "reorder_5_bad" demi::reorder(4), 1 Some(4), Some(1_118), Some(1_613);
    "circular_buffer" demi::circular_buffer(3), 2 None, None, None;
    "stack_bad" demi::stack(), 2 None, None, None;
    "executor" demi::executor(), 2 None, None, None;
    "once_cell" demi::once_cell(), 1 None, None, None;
    "channel" demi::channel(), 2 None, None, None;
    "block_channel" demi::block_channel(), 2 None, None, None;
    "oneshot" demi::oneshot(), 2 None, None, None;
    "queue_bad" demi::queue(3), 1 None, None, None;
    "qsort_mt" demi::sorting_pool(), 1 None, None, None;
    "aget" demi::interrupted_download(), 1 None, None, None;
    "pbzip2" demi::freed_queue(), 1 None, None, None;
    "ctrace" demi::ended_trace(), 1 None, None, None;
    "interlocked_stealing" demi::interlocked_stealing(3), 2 None, None, None;
    "gone_sender" demi::gone_sender(), 1 None, None, None;
    "refused_fill" demi::refused_fill(), 1 None, None, None;
    "remote_wake" demi::remote_wake(), 1 None, None, None;
    "reference_count" demi::reference_count(), 1 None, None, None;
    "spin_lock" demi::spin_lock(), 2 None, None, None;
    "wait_without_loop" demi::wait_without_loop(), 2 None, None, None;
    "join_under_lock" demi::join_under_lock(), 0 None, None, None;
    "upgrade" kinds::upgrade(), 0 None, None, None;
    "rendezvous" kinds::rendezvous(), 0 None, None, None;
    "park_twice" kinds::park_twice(), 0 None, None, None;
    "barrier" kinds::barrier(), 0 None, None, None;
    "once_under_lock" kinds::once_under_lock(), 1 None, None, None;
    "late_waker" kinds::late_waker(), 1 None, None, None;
    "parking_lot" kinds::parking_lot(), 1 None, None, None;
};
