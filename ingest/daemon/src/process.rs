//! What the process itself takes, as exporters of Prometheus tell it: `process_*`, without a prefix.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Amount = Gauge<f64, AtomicU64>;

/// Ticks a second in which Linux tells times of processes, whatever the kernel's own clock is (USER_HZ).
const TICKS: f64 = 100.0;

/// The figures of this process. They are read when they are asked for.
#[derive(Debug, Default)]
pub(super) struct Process {
    cpu: Counter<f64, AtomicU64>,
    resident: Amount,
    virtual_: Amount,
    open_files: Amount,
    most_files: Amount,
    start: Amount,
    threads: Amount,
}

impl Process {
    pub(super) fn register(&self, r: &mut Registry) {
        r.register("process_cpu_seconds", "CPU time of the process", self.cpu.clone());
        r.register("process_resident_memory_bytes", "Resident memory", self.resident.clone());
        r.register("process_virtual_memory_bytes", "Virtual memory", self.virtual_.clone());
        r.register("process_open_fds", "Open file descriptors", self.open_files.clone());
        r.register("process_max_fds", "Most open file descriptors", self.most_files.clone());
        r.register("process_start_time_seconds", "When the process started, since 1970", self.start.clone());
        r.register("process_threads", "Threads", self.threads.clone());
    }

    /// Reads them. What the system does not tell stays as it was.
    pub(super) fn read(&self) {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let stat = read("/proc/self/stat");
        // The name of the program stands in parentheses and may hold anything.
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
        // Numbered as proc(5) does, from the third on.
        let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<f64>().ok());
        if let (Some(user), Some(system)) = (field(14), field(15)) {
            // Set, not added to: two may ask at a time.
            self.cpu.inner().store(((user + system) / TICKS).to_bits(), Ordering::Relaxed);
        }
        let boot =
            read("/proc/stat").lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok());
        let start = boot.zip(field(22)).map(|(boot, after)| boot + after / TICKS);
        let status = read("/proc/self/status");
        let resident = status.lines().find_map(|line| {
            let kibibytes = line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<f64>();
            Some(kibibytes.ok()? * 1024.0)
        });
        let open = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let figures = [
            (&self.threads, field(20)),
            (&self.virtual_, field(23)),
            (&self.resident, resident),
            (&self.open_files, open),
            (&self.most_files, most.map(|most| most as f64)),
            (&self.start, start),
        ];
        for (gauge, figure) in figures {
            figure.map(|figure| gauge.set(figure));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_this_process() {
        let process = Process::default();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        process.read();
        let (open, start) = (process.open_files.get(), process.start.get());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        assert!(open >= 4.0 && open <= process.most_files.get(), "{process:?}");
        assert!(start <= now + 1.0 && now - start < 24.0 * 3600.0, "{start} {now}");
        assert!(
            process.resident.get() > 1e6 && process.virtual_.get() >= process.resident.get(),
            "{process:?}"
        );
        assert!(process.threads.get() >= 1.0);
        // It goes up.
        let before = process.cpu.get();
        let mut sum = 0_u64;
        while process.cpu.get() <= before {
            sum = (0..1_000_000_u64).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
            process.read();
        }
        assert!(std::hint::black_box(sum) > 0);
        drop(file);
    }
}
