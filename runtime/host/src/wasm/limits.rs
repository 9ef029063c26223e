//! What one call may use, and the limiter that enforces memory and tables over a whole store.

use std::time::Duration;

use wasmtime::ResourceLimiter;

use super::{engine, ticker};

/// Longest time one call may be given.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(10);
/// Least memory one call may be given, bytes: smaller stacks and heaps do not hold any toolchain's start-up.
pub const MIN_MEMORY: usize = 1 << 20;
/// Most table elements of one store, over all tables.
const MAX_ELEMENTS: usize = 2 * engine::TABLE_ELEMENTS;

/// What one call of a policy may use. Checked when made: whoever has one need not ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    timeout: Duration,
    memory: usize,
}

/// Limits that no call can be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The time is zero or too long.
    #[error("timeout {0:?} is not between 1 ms and {MAX_TIMEOUT:?}")]
    Timeout(Duration),
    /// The memory is too little or over the pool slot.
    #[error("memory of {0} bytes is not between {MIN_MEMORY} and {most}", most = engine::SLOT_MEMORY)]
    Memory(usize),
}

impl Limits {
    /// Limits of `timeout` (1 ms to 10 s) and `memory` bytes (1 MiB to 64 MiB, the pool slot) per call.
    ///
    /// # Errors
    /// Names the value that is out of bounds.
    pub fn new(timeout: Duration, memory: usize) -> Result<Self, Error> {
        if timeout < Duration::from_millis(1) || timeout > MAX_TIMEOUT {
            return Err(Error::Timeout(timeout));
        }
        if !(MIN_MEMORY..=engine::SLOT_MEMORY).contains(&memory) {
            return Err(Error::Memory(memory));
        }
        Ok(Self { timeout, memory })
    }

    /// Time per call.
    #[must_use]
    pub fn timeout(self) -> Duration {
        self.timeout
    }

    /// Memory per call, bytes, summed over all linear memories.
    #[must_use]
    pub fn memory(self) -> usize {
        self.memory
    }

    pub(crate) fn timeout_ms(self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// Epochs until a call is interrupted. One more than the quotient: the first tick may come at once.
    pub(super) fn ticks(self) -> u64 {
        let period = ticker::PERIOD.as_micros();
        u64::try_from(self.timeout.as_micros().div_ceil(period)).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Bytes that one call may hand from guest to host: an eighth of the memory, 1 to 8 MiB.
    pub(super) fn hostcall_fuel(self) -> usize {
        (self.memory / 8).clamp(1 << 20, 8 << 20)
    }

    /// Bytes that an answer may have, however it comes.
    pub(crate) fn answer(self) -> usize {
        self.hostcall_fuel()
    }

    /// For `settings`, asked once per load: at least a second, since an interpreter in the guest starts cold.
    pub(crate) fn for_settings(self) -> Self {
        Self { timeout: self.timeout.max(Duration::from_secs(1)), ..self }
    }
}

impl Default for Limits {
    /// 200 ms and 32 MiB.
    fn default() -> Self {
        Self { timeout: Duration::from_millis(200), memory: 32 << 20 }
    }
}

/// Sums memories and tables of one store. wasmtime's own `StoreLimits` bounds each memory for itself.
#[derive(Debug)]
pub(super) struct Limiter {
    limit: usize,
    memory: usize,
    elements: usize,
    /// What the last granted growths added, to take back what wasmtime could not do after all.
    last_memory: usize,
    last_elements: usize,
    refused: Option<String>,
}

impl Limiter {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, memory: 0, elements: 0, last_memory: 0, last_elements: 0, refused: None }
    }

    /// Bytes that were granted; memories never shrink.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// What was refused, if anything was: a guest that cannot grow traps a little later, in its own allocator.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.last_memory = 0;
        let more = desired.saturating_sub(current);
        let total = self.memory.saturating_add(more);
        if total > self.limit {
            self.refused = Some(format!("{total} bytes of linear memory wanted, {} are allowed", self.limit));
            return Ok(false);
        }
        // Over the memory's own declared maximum: the guest's choice, not our limit.
        if maximum.is_some_and(|max| desired > max) {
            return Ok(false);
        }
        self.memory = total;
        self.last_memory = more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory = self.memory.saturating_sub(self.last_memory);
        self.last_memory = 0;
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.last_elements = 0;
        let more = desired.saturating_sub(current);
        let total = self.elements.saturating_add(more);
        if desired > engine::TABLE_ELEMENTS || total > MAX_ELEMENTS {
            self.refused =
                Some(format!("{desired} table elements wanted ({total} in all), {} ({MAX_ELEMENTS}) are allowed", engine::TABLE_ELEMENTS));
            return Ok(false);
        }
        if maximum.is_some_and(|max| desired > max) {
            return Ok(false);
        }
        self.elements = total;
        self.last_elements = more;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.elements = self.elements.saturating_sub(self.last_elements);
        self.last_elements = 0;
        Ok(())
    }

    fn instances(&self) -> usize {
        engine::CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        engine::TABLES
    }

    fn memories(&self) -> usize {
        engine::MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_checked_when_made() {
        assert_eq!(Limits::new(Duration::ZERO, 32 << 20), Err(Error::Timeout(Duration::ZERO)));
        assert!(Limits::new(Duration::from_secs(11), 32 << 20).is_err());
        assert_eq!(Limits::new(Duration::from_millis(200), 65 << 20), Err(Error::Memory(65 << 20)));
        assert_eq!(Limits::new(Duration::from_millis(200), 32 << 20), Ok(Limits::default()));
    }

    #[test]
    fn ticks_never_end_before_the_timeout() {
        let ticks = |ms| Limits::new(Duration::from_millis(ms), 32 << 20).map(Limits::ticks);
        assert_eq!((ticks(1), ticks(5), ticks(6), ticks(200)), (Ok(2), Ok(2), Ok(3), Ok(41)));
    }

    #[test]
    fn memories_are_summed_and_failures_taken_back() -> wasmtime::Result<()> {
        let mut limiter = Limiter::new(3 << 16);
        assert!(limiter.memory_growing(0, 2 << 16, None)?);
        limiter.memory_grow_failed(wasmtime::Error::msg("mmap"))?;
        assert!(limiter.memory_growing(0, 2 << 16, None)?);
        assert!(limiter.memory_growing(0, 1 << 16, None)?);
        assert!(limiter.refused().is_none());
        assert!(!limiter.memory_growing(2 << 16, 3 << 16, None)?);
        assert_eq!(limiter.refused(), Some("262144 bytes of linear memory wanted, 196608 are allowed"));
        Ok(())
    }

    #[test]
    fn a_memorys_own_maximum_is_no_refusal_of_ours() -> wasmtime::Result<()> {
        let mut limiter = Limiter::new(8 << 16);
        assert!(!limiter.memory_growing(0, 2 << 16, Some(1 << 16))?);
        assert!(limiter.refused().is_none());
        assert!(!limiter.table_growing(0, engine::TABLE_ELEMENTS + 1, None)?);
        assert!(limiter.refused().is_some());
        Ok(())
    }
}
