/** How often it is looked, in ms. */
const everyMs = 100

/** Tells how late the event loop is, in seconds, ten times a second; what it gives ends that. */
export function watchLoop(onDelay: (seconds: number) => void): () => void {
  let due = performance.now() + everyMs
  const timer = setInterval(() => {
    const now = performance.now()
    onDelay(Math.max(0, now - due) / 1_000)
    due = now + everyMs
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
