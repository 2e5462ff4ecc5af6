/** Keeps what is in the order in which it came at so many: the oldest goes. */
export function forgetOldest(kept: Map<string, unknown> | Set<string>, most: number): void {
  for (const oldest of kept.keys()) {
    if (kept.size <= most) return
    kept.delete(oldest)
  }
}
