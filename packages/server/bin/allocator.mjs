/**
 * Settings of the runtime's allocator, which it reads when the process begins. After 100 ms it would give freed memory back to the
 * system, and take it anew for the next messages: that is a third of the CPU time of a busy relay. Now it waits for 10 s.
 */
export const allocatorSettings = { MIMALLOC_PURGE_DELAY: '10000' }
