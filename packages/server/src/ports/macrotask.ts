/**
 * Resolves in a later turn of the event loop. An embedded store answers at once: who awaits one read after another without this
 * keeps every socket waiting, however many reads there are.
 */
export const macrotask = () => new Promise<void>((resolve) => setImmediate(resolve))
