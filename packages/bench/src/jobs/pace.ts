/** Resolves when the call of that number is to begin; one that comes late begins at once. */
export function paceOf(perSecond: number | undefined): (call: number) => Promise<void> | undefined {
  if (perSecond === undefined) return () => undefined
  const start = performance.now()
  return (call) => {
    const ms = start + (call * 1000) / perSecond - performance.now()
    return ms > 0 ? Bun.sleep(ms) : undefined
  }
}
