/** Runs `work` while no other process does so for the same directory; waits for its turn. */
export function withLock<Result>(directory: string, work: () => Result): Result
