// The programs, over whatever `rt` is: the same text runs on several libraries. Each is written from what its bug is.

use rt::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::SeqCst};
use rt::sync::{Arc, Condvar, Mutex};
use rt::thread::spawn;

/// Two deposits that read and write in two sections.
pub fn bank() {
    let account = Arc::new(Mutex::new(0));
    let deposit = || {
        let account = Arc::clone(&account);
        spawn(move || {
            let balance = *account.lock().unwrap();
            *account.lock().unwrap() = balance + 1;
        })
    };
    let both = [deposit(), deposit()];
    both.into_iter().for_each(|task| task.join().unwrap());
    assert_eq!(*account.lock().unwrap(), 2, "a deposit is lost");
}

/// Three transfers among four accounts; each reads both balances before it writes them.
pub fn four_accounts() {
    let accounts: Arc<Vec<Mutex<i32>>> = Arc::new((0..4).map(|_| Mutex::new(100)).collect());
    let transfer = |from: usize, to: usize| {
        let accounts = Arc::clone(&accounts);
        spawn(move || {
            let left = *accounts[from].lock().unwrap();
            let there = *accounts[to].lock().unwrap();
            *accounts[from].lock().unwrap() = left - 10;
            *accounts[to].lock().unwrap() = there + 10;
        })
    };
    let all = [transfer(0, 1), transfer(1, 2), transfer(2, 3)];
    all.into_iter().for_each(|task| task.join().unwrap());
    let sum: i32 = accounts.iter().map(|account| *account.lock().unwrap()).sum();
    assert_eq!(sum, 400, "money is lost or made");
}

/// A buffer of one place with one condition variable for both sides, and `notify_one`.
pub fn buffer(producers: usize, consumers: usize, items: usize) {
    let shared = Arc::new((Mutex::new(0usize), Condvar::new()));
    let mut tasks = Vec::new();
    for side in 0..producers + consumers {
        let shared = Arc::clone(&shared);
        let puts = side >= consumers;
        tasks.push(spawn(move || {
            for _ in 0..items {
                let mut full = shared.0.lock().unwrap();
                while *full == usize::from(puts) {
                    full = shared.1.wait(full).unwrap();
                }
                *full = usize::from(puts);
                shared.1.notify_one();
                drop(full);
            }
        }));
    }
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

/// A task looks whether it has to wait, and is notified before it waits.
pub fn lost_wake_up() {
    let shared = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
    let other = Arc::clone(&shared);
    let task = spawn(move || {
        other.2.store(true, SeqCst);
        other.1.notify_one();
    });
    if !shared.2.load(SeqCst) {
        drop(shared.1.wait(shared.0.lock().unwrap()).unwrap());
    }
    task.join().unwrap();
}

/// Each philosopher takes the left fork first.
pub fn philosophers(count: usize) {
    let forks: Arc<Vec<Mutex<()>>> = Arc::new((0..count).map(|_| Mutex::new(())).collect());
    let eat = |at: usize| {
        let forks = Arc::clone(&forks);
        spawn(move || {
            let _left = forks[at].lock().unwrap();
            let _right = forks[(at + 1) % count].lock().unwrap();
        })
    };
    let all: Vec<_> = (0..count).map(eat).collect();
    all.into_iter().for_each(|task| task.join().unwrap());
}

/// A work-stealing queue after Cilk's THE protocol whose thief looks before it claims: both ends take the last item.
pub fn work_stealing(items: usize) {
    struct Queue {
        head: AtomicUsize,
        tail: AtomicUsize,
        lock: Mutex<()>,
        taken: Vec<AtomicUsize>,
    }
    let queue = Arc::new(Queue {
        head: AtomicUsize::new(0),
        tail: AtomicUsize::new(0),
        lock: Mutex::new(()),
        taken: (0..items).map(|_| AtomicUsize::new(0)).collect(),
    });
    let take = |queue: &Queue, item: usize| {
        assert_eq!(queue.taken[item].fetch_add(1, SeqCst), 0, "an item is taken twice");
    };
    let other = Arc::clone(&queue);
    let thief = spawn(move || {
        for _ in 0..2 {
            let lock = other.lock.lock().unwrap();
            let head = other.head.load(SeqCst);
            let found = head < other.tail.load(SeqCst);
            if found {
                // The claim comes after the look; before, it would be seen by the owner.
                other.head.store(head + 1, SeqCst);
            }
            drop(lock);
            if found {
                take(&other, head);
            }
        }
    });
    for item in 0..items {
        queue.tail.store(item + 1, SeqCst);
    }
    loop {
        let tail = queue.tail.load(SeqCst);
        let Some(last) = tail.checked_sub(1) else { break };
        queue.tail.store(last, SeqCst);
        if queue.head.load(SeqCst) <= last {
            take(&queue, last);
            continue;
        }
        // The thief was faster, or comes at the same time: under the lock it is decided.
        queue.tail.store(tail, SeqCst);
        let lock = queue.lock.lock().unwrap();
        queue.tail.store(last, SeqCst);
        let mine = queue.head.load(SeqCst) <= last;
        drop(lock);
        if !mine {
            break;
        }
        take(&queue, last);
    }
    thief.join().unwrap();
}

/// A stack without locks whose nodes are used again: between the look at the head and its exchange the same node comes back.
pub fn aba() {
    const NONE: usize = 9;
    struct Stack {
        head: AtomicUsize,
        next: [AtomicUsize; 2],
        used: [AtomicBool; 2],
    }
    impl Stack {
        fn pop(&self) -> Option<usize> {
            let head = self.head.load(SeqCst);
            if head == NONE {
                return None;
            }
            let next = self.next[head].load(SeqCst);
            if self.head.compare_exchange(head, next, SeqCst, SeqCst).is_err() {
                return None;
            }
            assert!(!self.used[head].swap(true, SeqCst), "a node is popped twice");
            Some(head)
        }
        fn push(&self, node: usize) {
            self.used[node].store(false, SeqCst);
            let head = self.head.load(SeqCst);
            self.next[node].store(head, SeqCst);
            let _ = self.head.compare_exchange(head, node, SeqCst, SeqCst);
        }
    }
    let stack = Arc::new(Stack {
        head: AtomicUsize::new(0),
        next: [AtomicUsize::new(1), AtomicUsize::new(NONE)],
        used: [AtomicBool::new(false), AtomicBool::new(false)],
    });
    let other = Arc::clone(&stack);
    let task = spawn(move || {
        if let Some(first) = other.pop() {
            // The second stays with this task.
            other.pop();
            other.push(first);
        }
    });
    stack.pop();
    task.join().unwrap();
    let head = stack.head.load(SeqCst);
    assert!(head == NONE || !stack.used[head].load(SeqCst), "a node that somebody has is on the stack");
}

/// A check that is wrong for every balance, and runs only after both others.
pub fn account() {
    let shared = Arc::new(Mutex::new((10, false, false)));
    let (one, two, three) = (Arc::clone(&shared), Arc::clone(&shared), Arc::clone(&shared));
    let check = spawn(move || {
        let state = three.lock().unwrap();
        if state.1 && state.2 {
            assert_eq!(state.0, 10 - 3 - 2, "the check has the wrong sign");
        }
    });
    let deposit = spawn(move || {
        let mut state = one.lock().unwrap();
        state.0 += 3;
        state.1 = true;
    });
    let withdraw = spawn(move || {
        let mut state = two.lock().unwrap();
        state.0 -= 2;
        state.2 = true;
    });
    [deposit, withdraw, check].into_iter().for_each(|task| task.join().unwrap());
}

/// The order in which the tasks were begun is the one that fails.
pub fn lazy() {
    let data = Arc::new(Mutex::new(0));
    let add = |by: i32| {
        let data = Arc::clone(&data);
        spawn(move || *data.lock().unwrap() += by)
    };
    let (one, two) = (add(1), add(2));
    let other = Arc::clone(&data);
    let three = spawn(move || assert!(*other.lock().unwrap() < 3, "both came before"));
    [one, two, three].into_iter().for_each(|task| task.join().unwrap());
}

/// Three tasks hand a token round, a fourth expects it to be the same everywhere when all are done.
pub fn token_ring() {
    let ring = Arc::new(Mutex::new(([1, 2, 1], [false; 3])));
    let hand = |f: fn(&mut [i32; 3]), flag: usize| {
        let ring = Arc::clone(&ring);
        spawn(move || {
            let mut state = ring.lock().unwrap();
            f(&mut state.0);
            state.1[flag] = true;
        })
    };
    let (one, two, three) =
        (hand(|x| x[0] = (x[2] + 1) % 4, 0), hand(|x| x[1] = x[0], 1), hand(|x| x[2] = x[1], 2));
    let other = Arc::clone(&ring);
    let check = spawn(move || {
        let state = other.lock().unwrap();
        let [a, b, c] = state.0;
        assert!(state.1.contains(&false) || (a == b && b == c), "the tokens differ");
    });
    let tasks = [one, two, three, check];
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

/// Two locks in opposite orders.
pub fn deadlock() {
    let locks = Arc::new((Mutex::new(()), Mutex::new(())));
    let other = Arc::clone(&locks);
    let one = spawn(move || {
        let _first = other.0.lock().unwrap();
        let _second = other.1.lock().unwrap();
    });
    let other = Arc::clone(&locks);
    let two = spawn(move || {
        let _first = other.1.lock().unwrap();
        let _second = other.0.lock().unwrap();
    });
    one.join().unwrap();
    two.join().unwrap();
}

/// The first of each of two groups takes a lock for its group while it holds the lock of the counters.
pub fn carter() {
    let shared = Arc::new((Mutex::new([0; 2]), Mutex::new(())));
    let member = |of: usize| {
        let shared = Arc::clone(&shared);
        spawn(move || {
            let mut counters = shared.0.lock().unwrap();
            counters[of] += 1;
            // The counters stay locked over this wait, and who could end it needs them.
            let group = (counters[of] == 1).then(|| shared.1.lock().unwrap());
            drop(counters);
            let mut counters = shared.0.lock().unwrap();
            counters[of] -= 1;
            drop(group);
        })
    };
    let tasks = [member(0), member(1), spawn(|| ()), spawn(|| ())];
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

/// A driver is stopped between a request's look at the flag and its entry in the count.
pub fn bluetooth() {
    struct Driver {
        stopping: AtomicBool,
        stopped: AtomicBool,
        pending: AtomicI32,
    }
    let driver = Arc::new(Driver {
        stopping: AtomicBool::new(false),
        stopped: AtomicBool::new(false),
        pending: AtomicI32::new(1),
    });
    let other = Arc::clone(&driver);
    let stop = spawn(move || {
        other.stopping.store(true, SeqCst);
        if other.pending.fetch_sub(1, SeqCst) == 1 {
            other.stopped.store(true, SeqCst);
        }
    });
    if !driver.stopping.load(SeqCst) {
        driver.pending.fetch_add(1, SeqCst);
        assert!(!driver.stopped.load(SeqCst), "a request after the stop");
        driver.pending.fetch_sub(1, SeqCst);
    }
    stop.join().unwrap();
}

/// The length of a text is read in one section, its characters in another.
pub fn string_buffer() {
    let text = Arc::new(Mutex::new("abc".to_owned()));
    let other = Arc::clone(&text);
    let erase = spawn(move || other.lock().unwrap().clear());
    let length = text.lock().unwrap().len();
    let got = text.lock().unwrap().get(..length).map(str::len);
    assert_eq!(got, Some(length), "the text was erased between its length and its characters");
    erase.join().unwrap();
}

/// One value is made of another in a second section, and somebody looks between the two.
pub fn two_stage(writers: usize) {
    let shared = Arc::new((Mutex::new(0), Mutex::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..writers {
        let shared = Arc::clone(&shared);
        tasks.push(spawn(move || {
            *shared.0.lock().unwrap() = 1;
            let first = *shared.0.lock().unwrap();
            *shared.1.lock().unwrap() = first + 1;
        }));
    }
    let other = Arc::clone(&shared);
    tasks.push(spawn(move || {
        let first = *other.0.lock().unwrap();
        if first != 0 {
            assert_eq!(*other.1.lock().unwrap(), first + 1, "the second stage is missing");
        }
    }));
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

/// Some take one lock and others another for the same value.
pub fn wrong_lock(others: usize) {
    struct Shared {
        one: Mutex<()>,
        two: Mutex<()>,
        value: AtomicI32,
    }
    let shared = Arc::new(Shared { one: Mutex::new(()), two: Mutex::new(()), value: AtomicI32::new(0) });
    let mut tasks = Vec::new();
    let of_one = Arc::clone(&shared);
    tasks.push(spawn(move || {
        let _lock = of_one.one.lock().unwrap();
        let before = of_one.value.load(SeqCst);
        assert_eq!(of_one.value.load(SeqCst), before, "changed under the lock");
    }));
    for _ in 0..others {
        let shared = Arc::clone(&shared);
        tasks.push(spawn(move || {
            let _lock = shared.two.lock().unwrap();
            shared.value.fetch_add(1, SeqCst);
        }));
    }
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

/// Some set two values one after the other, and one looks at both.
pub fn reorder(setters: usize) {
    let values = Arc::new((AtomicI32::new(0), AtomicI32::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..setters {
        let values = Arc::clone(&values);
        tasks.push(spawn(move || {
            values.0.store(1, SeqCst);
            values.1.store(-1, SeqCst);
        }));
    }
    let other = Arc::clone(&values);
    tasks.push(spawn(move || {
        let both = (other.0.load(SeqCst), other.1.load(SeqCst));
        assert!(both == (0, 0) || both == (1, -1), "one value without the other");
    }));
    tasks.into_iter().for_each(|task| task.join().unwrap());
}

/// A ring of places whose writer and reader count what is in it without an exchange.
pub fn circular_buffer(items: usize) {
    struct Ring {
        count: AtomicUsize,
        places: [AtomicUsize; 4],
    }
    let ring =
        Arc::new(Ring { count: AtomicUsize::new(0), places: [0; 4].map(|_: usize| AtomicUsize::new(0)) });
    let other = Arc::clone(&ring);
    let writer = spawn(move || {
        for item in 1..=items {
            other.places[item % 4].store(item, SeqCst);
            let count = other.count.load(SeqCst);
            other.count.store(count + 1, SeqCst);
        }
    });
    let mut got = 0;
    for item in 1..=items {
        let count = ring.count.load(SeqCst);
        if count == 0 {
            break;
        }
        got += 1;
        assert_eq!(ring.places[item % 4].load(SeqCst), item);
        ring.count.store(count - 1, SeqCst);
    }
    writer.join().unwrap();
    assert_eq!(ring.count.load(SeqCst), items - got, "the count is wrong");
}

/// A stack whose count and whose items are two things.
pub fn stack() {
    let shared = Arc::new((Mutex::new(Vec::new()), AtomicUsize::new(0)));
    let other = Arc::clone(&shared);
    let pusher = spawn(move || {
        for item in 0..2 {
            other.1.fetch_add(1, SeqCst);
            other.0.lock().unwrap().push(item);
        }
    });
    let mut popped = 0;
    for _ in 0..2 {
        if shared.1.load(SeqCst) > popped {
            assert!(shared.0.lock().unwrap().pop().is_some(), "counted and not there");
            popped += 1;
        }
    }
    pusher.join().unwrap();
}

/// A stack of indices without locks whose pops hold the count of a node in one place and its successor in another; after Vyukov.
pub fn safe_stack(tasks: usize, rounds: usize) {
    struct Stack {
        head: AtomicI32,
        count: AtomicI32,
        next: Vec<AtomicI32>,
        owner: Vec<AtomicI32>,
    }
    impl Stack {
        fn pop(&self) -> Option<i32> {
            while self.count.load(SeqCst) > 1 {
                let head = self.head.load(SeqCst);
                let next = self.next[head as usize].swap(-1, SeqCst);
                if next >= 0 {
                    if self.head.compare_exchange(head, next, SeqCst, SeqCst).is_ok() {
                        self.count.fetch_sub(1, SeqCst);
                        return Some(head);
                    }
                    self.next[head as usize].swap(next, SeqCst);
                }
                rt::thread::yield_now();
            }
            None
        }
        fn push(&self, node: i32) {
            let mut head = self.head.load(SeqCst);
            loop {
                self.next[node as usize].store(head, SeqCst);
                match self.head.compare_exchange(head, node, SeqCst, SeqCst) {
                    Ok(_) => break,
                    Err(now) => head = now,
                }
                rt::thread::yield_now();
            }
            self.count.fetch_add(1, SeqCst);
        }
    }
    let stack = Arc::new(Stack {
        head: AtomicI32::new(0),
        count: AtomicI32::new(3),
        next: [1, 2, -1].map(AtomicI32::new).into(),
        owner: [-1, -1, -1].map(AtomicI32::new).into(),
    });
    let task = |me: i32| {
        let stack = Arc::clone(&stack);
        spawn(move || {
            for _ in 0..rounds {
                let Some(node) = stack.pop() else { continue };
                stack.owner[node as usize].store(me, SeqCst);
                assert_eq!(stack.owner[node as usize].load(SeqCst), me, "a node has two owners");
                stack.push(node);
            }
        })
    };
    let all: Vec<_> = (0..tasks as i32).map(task).collect();
    all.into_iter().for_each(|task| task.join().unwrap());
}

/// An executor sleeps after it looked for work, and a waker that finds it awake leaves it alone. After a lost wake-up of heph, mended in its pull request 437
/// by a second look.
pub fn executor() {
    struct Executor {
        queued: AtomicUsize,
        sleeps: AtomicBool,
        wake: (Mutex<bool>, Condvar),
    }
    let executor = Arc::new(Executor {
        queued: AtomicUsize::new(0),
        sleeps: AtomicBool::new(false),
        wake: (Mutex::new(false), Condvar::new()),
    });
    let other = Arc::clone(&executor);
    let worker = spawn(move || {
        while other.queued.load(SeqCst) == 0 {
            other.sleeps.store(true, SeqCst);
            // The second look belongs here.
            let mut woken = other.wake.0.lock().unwrap();
            while !*woken {
                woken = other.wake.1.wait(woken).unwrap();
            }
            *woken = false;
            other.sleeps.store(false, SeqCst);
        }
    });
    executor.queued.fetch_add(1, SeqCst);
    if executor.sleeps.load(SeqCst) {
        *executor.wake.0.lock().unwrap() = true;
        executor.wake.1.notify_one();
    }
    worker.join().unwrap();
}

/// A cell that is to be set once, and looks before it sets: two closures run, as in cells before they had a state for "is being set".
pub fn once_cell() {
    let cell = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
    let init = |cell: &(AtomicBool, AtomicUsize)| {
        if !cell.0.load(SeqCst) {
            cell.1.fetch_add(1, SeqCst);
            cell.0.store(true, SeqCst);
        }
    };
    let other = Arc::clone(&cell);
    let task = spawn(move || init(&other));
    init(&cell);
    task.join().unwrap();
    assert_eq!(cell.1.load(SeqCst), 1, "set twice");
}

/// A channel whose receiver leaves between a sender's look at it and the sender's message: the message stays behind. After the channel of futures 0.1.19,
/// mended in the pull request 1241 of futures-rs.
pub fn channel() {
    struct Channel {
        closed: AtomicBool,
        queue: Mutex<Vec<u32>>,
    }
    let channel = Arc::new(Channel { closed: AtomicBool::new(false), queue: Mutex::new(Vec::new()) });
    let other = Arc::clone(&channel);
    let sender = spawn(move || {
        if other.closed.load(SeqCst) {
            return false;
        }
        other.queue.lock().unwrap().push(1);
        true
    });
    channel.closed.store(true, SeqCst);
    let drained = std::mem::take(&mut *channel.queue.lock().unwrap()).len();
    let sent = sender.join().unwrap();
    assert!(!sent || drained == 1, "a message was accepted and is lost");
}

/// A channel of blocks: the first sender makes the first block and tells the receiver's side of it in a second step, and a receiver that leaves takes
/// the block away while it waits for that. After the double free of crossbeam-channel 0.5.12 (RUSTSEC-2025-0024): the wait looked at the block instead
/// of taking it.
pub fn block_channel() {
    struct Channel {
        sent: AtomicUsize,
        /// 0 where there is no block yet.
        last: AtomicUsize,
        first: AtomicUsize,
        freed: AtomicUsize,
    }
    impl Channel {
        fn send(&self) {
            if self.last.load(SeqCst) == 0 && self.last.compare_exchange(0, 1, SeqCst, SeqCst).is_ok() {
                self.first.store(1, SeqCst);
            }
            self.sent.fetch_add(1, SeqCst);
        }
        fn leave(&self) {
            let sent = self.sent.load(SeqCst);
            let mut block = self.first.swap(0, SeqCst);
            if sent > 0 {
                while block == 0 {
                    rt::thread::yield_now();
                    block = self.first.load(SeqCst);
                }
            }
            self.freed.fetch_add(block, SeqCst);
        }
    }
    let none = || AtomicUsize::new(0);
    let channel = Arc::new(Channel { sent: none(), last: none(), first: none(), freed: none() });
    let send = || {
        let channel = Arc::clone(&channel);
        spawn(move || channel.send())
    };
    let senders = [send(), send()];
    channel.leave();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    // The last one drops the channel with what is left in it.
    let left = channel.first.load(SeqCst);
    assert!(channel.freed.load(SeqCst) + left <= 1, "the block is freed twice");
}

/// A channel for one value whose receiver closes it and then looks for a value, while the sender, which finds it closed, takes its value back: both
/// have it. After the data race of tokio's oneshot (RUSTSEC-2021-0124).
pub fn oneshot() {
    const SENT: usize = 1;
    const CLOSED: usize = 2;
    struct Oneshot {
        state: AtomicUsize,
        value: AtomicUsize,
        users: AtomicUsize,
    }
    impl Oneshot {
        fn take(&self) -> bool {
            assert_eq!(self.users.fetch_add(1, SeqCst), 0, "both use the value at once");
            let found = self.value.swap(0, SeqCst) != 0;
            self.users.fetch_sub(1, SeqCst);
            found
        }
    }
    let shared = Arc::new(Oneshot {
        state: AtomicUsize::new(0),
        value: AtomicUsize::new(0),
        users: AtomicUsize::new(0),
    });
    let other = Arc::clone(&shared);
    let sender = spawn(move || {
        other.value.store(7, SeqCst);
        if other.state.fetch_or(SENT, SeqCst) & CLOSED != 0 {
            other.take();
        }
    });
    let before = shared.state.fetch_or(CLOSED, SeqCst);
    // The value may be looked at only if it was sent before the close.
    if before & SENT != 0 || shared.state.load(SeqCst) & SENT != 0 {
        shared.take();
    }
    sender.join().unwrap();
}

/// A reader counts its rounds instead of what it takes: a round in which nothing was there shifts what it expects.
pub fn queue(items: usize) {
    struct Shared {
        queue: Vec<usize>,
        stored: Vec<usize>,
        full: bool,
    }
    let shared = Arc::new(Mutex::new(Shared { queue: Vec::new(), stored: Vec::new(), full: false }));
    let other = Arc::clone(&shared);
    let writer = spawn(move || {
        for item in 0..items {
            let mut shared = other.lock().unwrap();
            if !shared.full {
                shared.queue.push(item);
                shared.stored.push(item);
                shared.full = true;
            }
        }
    });
    let other = Arc::clone(&shared);
    let reader = spawn(move || {
        for round in 0..items {
            let mut shared = other.lock().unwrap();
            if shared.full {
                let item = shared.queue.remove(0);
                assert_eq!(shared.stored.get(round), Some(&item), "another item than the one of this round");
                shared.full = false;
            }
        }
    });
    writer.join().unwrap();
    reader.join().unwrap();
}

/// A pool of sorting tasks: who hands out work says so before it takes the helper's lock, and the helper begins without any. After the `qsort_mt` of
/// FreeBSD.
pub fn sorting_pool() {
    const IDLE: usize = 0;
    const WORK: usize = 1;
    struct Helper {
        state: AtomicUsize,
        elements: Mutex<usize>,
        changed: Condvar,
    }
    let helper = Arc::new(Helper {
        state: AtomicUsize::new(IDLE),
        elements: Mutex::new(0),
        changed: Condvar::new(),
    });
    let other = Arc::clone(&helper);
    let task = spawn(move || {
        let mut elements = other.elements.lock().unwrap();
        while other.state.load(SeqCst) == IDLE {
            elements = other.changed.wait(elements).unwrap();
        }
        assert_ne!(*elements, 0, "there is work, and nobody has said what");
    });
    helper.state.store(WORK, SeqCst);
    *helper.elements.lock().unwrap() = 4;
    helper.changed.notify_one();
    task.join().unwrap();
}

/// A download is interrupted and saves how far it is, between a loader's offset and the sum of all of them. After the download accelerator aget.
pub fn interrupted_download() {
    let progress = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
    let other = Arc::clone(&progress);
    let loader = spawn(move || {
        for _ in 0..2 {
            other.0.fetch_add(1, SeqCst);
            *other.1.lock().unwrap() += 1;
        }
    });
    let other = Arc::clone(&progress);
    let saver = spawn(move || {
        let sum = *other.1.lock().unwrap();
        assert_eq!(other.0.load(SeqCst), sum, "what is saved contradicts itself");
    });
    loader.join().unwrap();
    saver.join().unwrap();
}

/// The main task waits for the output, and takes the queue away while a compressing task still looks at it. After pbzip2 0.9.4.
pub fn freed_queue() {
    struct Queue {
        blocks: Mutex<(Vec<u32>, bool)>,
        changed: Condvar,
        written: Mutex<u32>,
        wrote: Condvar,
        freed: AtomicBool,
    }
    let queue = Arc::new(Queue {
        blocks: Mutex::new((Vec::new(), false)),
        changed: Condvar::new(),
        written: Mutex::new(0),
        wrote: Condvar::new(),
        freed: AtomicBool::new(false),
    });
    let other = Arc::clone(&queue);
    let compressor = spawn(move || {
        loop {
            assert!(!other.freed.load(SeqCst), "the queue is gone");
            let mut blocks = other.blocks.lock().unwrap();
            while blocks.0.is_empty() && !blocks.1 {
                blocks = other.changed.wait(blocks).unwrap();
            }
            if blocks.0.pop().is_none() {
                break;
            }
            drop(blocks);
            *other.written.lock().unwrap() += 1;
            other.wrote.notify_one();
        }
    });
    *queue.blocks.lock().unwrap() = (vec![1], true);
    queue.changed.notify_one();
    let mut written = queue.written.lock().unwrap();
    while *written == 0 {
        written = queue.wrote.wait(written).unwrap();
    }
    drop(written);
    queue.freed.store(true, SeqCst);
    compressor.join().unwrap();
}

/// A trace library is ended by one task while another one, which saw it enabled, traces. After ctrace.
pub fn ended_trace() {
    struct Trace {
        enabled: AtomicBool,
        readers: Mutex<u32>,
        entry: AtomicBool,
    }
    let trace = Arc::new(Trace {
        enabled: AtomicBool::new(true),
        readers: Mutex::new(0),
        entry: AtomicBool::new(true),
    });
    let other = Arc::clone(&trace);
    let end = spawn(move || {
        other.enabled.store(false, SeqCst);
        other.entry.store(false, SeqCst);
    });
    if trace.enabled.load(SeqCst) {
        *trace.readers.lock().unwrap() += 1;
        assert!(trace.entry.load(SeqCst), "the entry of the task is gone");
        *trace.readers.lock().unwrap() -= 1;
    }
    end.join().unwrap();
}

/// A work-stealing queue without locks whose owner takes the last item without an exchange. After CHESS's interlocked queue.
pub fn interlocked_stealing(items: usize) {
    struct Queue {
        head: AtomicUsize,
        tail: AtomicUsize,
        taken: Vec<AtomicUsize>,
    }
    impl Queue {
        fn take(&self, item: usize) {
            assert_eq!(self.taken[item].fetch_add(1, SeqCst), 0, "an item is taken twice");
        }
    }
    let queue = Arc::new(Queue {
        head: AtomicUsize::new(0),
        tail: AtomicUsize::new(0),
        taken: (0..items).map(|_| AtomicUsize::new(0)).collect(),
    });
    let other = Arc::clone(&queue);
    let thief = spawn(move || {
        for _ in 0..2 {
            let head = other.head.load(SeqCst);
            if head < other.tail.load(SeqCst)
                && other.head.compare_exchange(head, head + 1, SeqCst, SeqCst).is_ok()
            {
                other.take(head);
            }
        }
    });
    for item in 0..items {
        queue.tail.store(item + 1, SeqCst);
    }
    for _ in 0..items {
        let last = queue.tail.load(SeqCst) - 1;
        queue.tail.store(last, SeqCst);
        if queue.head.load(SeqCst) <= last {
            // The last one belongs to who exchanges the head.
            queue.take(last);
        } else {
            queue.tail.store(last + 1, SeqCst);
            break;
        }
    }
    thief.join().unwrap();
}

/// A receiver finds the queue empty and then the sender gone, and does not look again: what was sent in between is lost. After flume, mended in its
/// pull request 121.
pub fn gone_sender() {
    let channel = Arc::new((Mutex::new(Vec::new()), AtomicUsize::new(1)));
    let other = Arc::clone(&channel);
    let sender = spawn(move || {
        other.0.lock().unwrap().push(7);
        other.1.fetch_sub(1, SeqCst);
    });
    let received = loop {
        let found = channel.0.lock().unwrap().pop();
        if found.is_some() {
            break found;
        }
        if channel.1.load(SeqCst) == 0 {
            break None;
        }
        rt::thread::yield_now();
    };
    assert_eq!(received, Some(7), "a message is lost");
    sender.join().unwrap();
}

/// A cell that refuses to be filled while another one fills it, and is empty until that is done: who was refused finds nothing in it. After lazycell in
/// syntect, mended in syntect's pull request 391.
pub fn refused_fill() {
    const EMPTY: usize = 0;
    const FILLING: usize = 1;
    const FULL: usize = 2;
    let cell = Arc::new((AtomicUsize::new(EMPTY), AtomicUsize::new(0)));
    let get = |cell: &(AtomicUsize, AtomicUsize)| {
        if cell.0.load(SeqCst) != FULL && cell.0.compare_exchange(EMPTY, FILLING, SeqCst, SeqCst).is_ok() {
            cell.1.store(7, SeqCst);
            cell.0.store(FULL, SeqCst);
        }
        assert_eq!(cell.0.load(SeqCst), FULL, "filled by somebody, and empty");
        cell.1.load(SeqCst)
    };
    let other = Arc::clone(&cell);
    let task = spawn(move || get(&other));
    assert_eq!((get(&cell), task.join().unwrap()), (7, 7));
}

/// An executor whose wakers leave a task alone that another waker is just entering into the queue; but that one entered it before the last poll. After
/// compio-executor 0.1.1, mended in compio's pull request 949.
pub fn remote_wake() {
    const SCHEDULED: usize = 1;
    const SCHEDULING: usize = 2;
    struct Remote {
        state: AtomicUsize,
        events: AtomicUsize,
        queue: Mutex<usize>,
        pushed: Condvar,
    }
    impl Remote {
        fn wake(&self) {
            self.events.fetch_add(1, SeqCst);
            if self.state.fetch_or(SCHEDULED | SCHEDULING, SeqCst) & (SCHEDULED | SCHEDULING) == 0 {
                *self.queue.lock().unwrap() += 1;
                self.pushed.notify_one();
            }
            self.state.fetch_and(!SCHEDULING, SeqCst);
        }
    }
    let remote = Arc::new(Remote {
        state: AtomicUsize::new(0),
        events: AtomicUsize::new(0),
        queue: Mutex::new(0),
        pushed: Condvar::new(),
    });
    let waker = || {
        let remote = Arc::clone(&remote);
        spawn(move || remote.wake())
    };
    let wakers = [waker(), waker()];
    while remote.events.load(SeqCst) < 2 {
        let mut queue = remote.queue.lock().unwrap();
        while *queue == 0 {
            queue = remote.pushed.wait(queue).unwrap();
        }
        *queue -= 1;
        drop(queue);
        remote.state.fetch_and(!SCHEDULED, SeqCst);
    }
    wakers.into_iter().for_each(|waker| waker.join().unwrap());
}

/// Two owners each look whether they are the last, and then give up their share: nobody was.
pub fn reference_count() {
    let shared = Arc::new((AtomicUsize::new(2), AtomicUsize::new(0)));
    let give_up = |shared: &(AtomicUsize, AtomicUsize)| {
        if shared.0.load(SeqCst) == 1 {
            shared.1.fetch_add(1, SeqCst);
        } else {
            shared.0.fetch_sub(1, SeqCst);
        }
    };
    let other = Arc::clone(&shared);
    let task = spawn(move || give_up(&other));
    give_up(&shared);
    task.join().unwrap();
    assert_eq!(shared.1.load(SeqCst), 1, "nobody frees the value");
}

/// A lock that is looked at and then taken: two find it free.
pub fn spin_lock() {
    let lock = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
    let enter = |lock: &(AtomicBool, AtomicUsize)| {
        while lock.0.load(SeqCst) {
            rt::thread::yield_now();
        }
        lock.0.store(true, SeqCst);
        assert_eq!(lock.1.fetch_add(1, SeqCst), 0, "two are inside");
        lock.1.fetch_sub(1, SeqCst);
        lock.0.store(false, SeqCst);
    };
    let other = Arc::clone(&lock);
    let task = spawn(move || enter(&other));
    enter(&lock);
    task.join().unwrap();
}

/// A waiter looks once whether there is something, wakes up, and does not look again.
pub fn wait_without_loop() {
    let shared = Arc::new((Mutex::new(0usize), Condvar::new()));
    let take = || {
        let shared = Arc::clone(&shared);
        spawn(move || {
            let mut items = shared.0.lock().unwrap();
            if *items == 0 {
                items = shared.1.wait(items).unwrap();
            }
            assert_ne!(*items, 0, "woken up for nothing");
            *items -= 1;
        })
    };
    let takers = [take(), take()];
    for _ in 0..2 {
        *shared.0.lock().unwrap() += 1;
        shared.1.notify_all();
    }
    takers.into_iter().for_each(|taker| taker.join().unwrap());
}

/// A task waits for the end of another one, and holds the lock that the other one needs.
pub fn join_under_lock() {
    let lock = Arc::new(Mutex::new(0));
    let other = Arc::clone(&lock);
    let held = lock.lock().unwrap();
    let task = spawn(move || *other.lock().unwrap() += 1);
    task.join().unwrap();
    drop(held);
}
