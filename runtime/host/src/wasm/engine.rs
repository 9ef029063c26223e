//! The one engine of the process: features, compiler and allocation (design section 5, facts/wasm-hosts.md 3.2).

use std::{hash::Hash, num::NonZeroUsize};

use sha2::{Digest, Sha256};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Strategy};

/// Linear memory of one pool slot, bytes; no policy can be given more.
pub const SLOT_MEMORY: usize = 64 << 20;
/// Core instances of one component.
pub(super) const CORE_INSTANCES: usize = 16;
/// Linear memories of one component.
pub(super) const MEMORIES: usize = 4;
/// Tables of one component.
pub(super) const TABLES: usize = 8;
/// Elements of one table.
pub(super) const TABLE_ELEMENTS: usize = 20_000;
/// Frames of a guest's backtrace; more would only cost time, since messages carry none.
const BACKTRACE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// No engine could be made.
#[derive(Debug, thiserror::Error)]
#[error("the Wasm engine does not start: {0}")]
pub struct Error(String);

/// Where instances live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allocation {
    /// In a pool reserved at the start: instantiation is a few microseconds.
    Pooling,
    /// Made for each call, because the pool could not be had: slower, same limits.
    OnDemand {
        /// Why there is no pool.
        reason: String,
    },
}

/// Everything that shapes compiled code, so that a compile-only engine in another process is compatible.
fn base() -> Config {
    let mut config = Config::new();
    // Winch had four escapes or leaks of its own in one month; its speed of compiling is of no use with an AOT cache.
    config.strategy(Strategy::Cranelift);
    config.epoch_interruption(true);
    config.memory_init_cow(true);
    config.wasm_backtrace_max_frames(Some(BACKTRACE));
    // Also turns component-model-async off, which had a stack overflow in 2026.
    config.concurrency_support(false);
    // The cargo feature `gc` is compiled in (RUSTSEC-2026-0570); nothing of it is used.
    config.wasm_function_references(false);
    config.wasm_gc(false);
    config.wasm_exceptions(false);
    config.gc_support(false);
    config.wasm_memory64(false);
    // With it off, wasmtime 48 panics while compiling components with internal adapters.
    config.wasm_multi_memory(true);
    // The same answer on every CPU: answers are remembered, stored and compared between machines.
    config.relaxed_simd_deterministic(true);
    config.cranelift_nan_canonicalization(true);
    // Left at their defaults on purpose: signal-based traps (on) and the 4 GiB memory reservation, which together let
    // bounds checks be elided; a smaller reservation took part in GHSA-6wgr.
    config
}

/// An engine that only compiles: no pool, so a small address space is enough. Its output loads in [`start`]'s engine.
pub(super) fn compile_only() -> Result<Engine, Error> {
    Engine::new(&base()).map_err(|e| Error(super::text::chain(&e)))
}

/// The engine for `threads` simultaneous calls. The pool is probed by reserving it; without one it is on demand.
pub(super) fn start(threads: NonZeroUsize) -> Result<(Engine, Allocation), Error> {
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(threads)));
    match Engine::new(&config) {
        Ok(engine) => Ok((engine, Allocation::Pooling)),
        Err(error) => {
            let reason = super::text::chain(&error);
            tracing::warn!(target: "weir::host", %reason, "no instance pool; instances are made on demand");
            Ok((compile_only()?, Allocation::OnDemand { reason }))
        }
    }
}

/// Small totals: one component per thread and one to spare, each at its own maximum.
fn pool(threads: NonZeroUsize) -> PoolingAllocationConfig {
    let components = u32::try_from(threads.get()).unwrap_or(u32::MAX).saturating_add(1);
    let per_component = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let total = |count: usize| components.saturating_mul(per_component(count));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(components)
        .total_core_instances(total(CORE_INSTANCES))
        .total_memories(total(MEMORIES))
        .total_tables(total(TABLES))
        .max_core_instances_per_component(per_component(CORE_INSTANCES))
        .max_memories_per_component(per_component(MEMORIES))
        .max_tables_per_component(per_component(TABLES))
        .max_memory_size(SLOT_MEMORY)
        .table_elements(TABLE_ELEMENTS)
        .linear_memory_keep_resident(keep_resident())
        .table_keep_resident(16 << 10)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Bytes at the start of each memory that stay mapped between calls: zeroing them is cheaper than faulting pages in again, if
/// only those that were written are zeroed, which the kernel can tell since Linux 6.7. A Rust guest has its stack in the first MiB
/// and its heap behind it.
fn keep_resident() -> usize {
    if PoolingAllocationConfig::is_pagemap_scan_available() { 1_280 << 10 } else { 64 << 10 }
}

/// Names everything that compiled code depends on: wasmtime's version, its settings, the CPU's features.
pub(super) fn compatibility(engine: &Engine) -> String {
    let mut hasher = Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex::encode(hasher.0.finalize()).chars().take(16).collect()
}

/// std's own hasher may change with the compiler; a directory's name must not.
struct Hasher(Sha256);

impl std::hash::Hasher for Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compile_only_engine_is_compatible() -> Result<(), Error> {
        let (engine, allocation) = start(NonZeroUsize::MIN)?;
        assert_eq!(allocation, Allocation::Pooling, "this machine reserves address space");
        assert_eq!(compatibility(&engine), compatibility(&compile_only()?));
        assert_eq!(compatibility(&engine).len(), 16);
        Ok(())
    }
}
