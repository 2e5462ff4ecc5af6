/** Settings that the runtime reads when its process begins. The names belong to the version that is installed with the service. */
export const runtimeSettings = {
  // The allocator would give freed memory back to the system after 100 ms, and take it anew for the next messages: that is a third
  // of the CPU time of a busy relay. Now it waits for 10 s.
  MIMALLOC_PURGE_DELAY: '10000',
  // A thread would touch the memory of each new part of the heap before the service does: with one message in flight a tenth of
  // the CPU time, and memory that idle clients do not need.
  BUN_JSC_useWarmUpMarkedBlocks: '0',
}
