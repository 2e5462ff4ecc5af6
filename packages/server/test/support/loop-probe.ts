import { readFileSync } from 'node:fs'

/**
 * Loaded before a service (`BUN_OPTIONS=--preload=…`) it says on stderr for how long its event loop stood still, and for how
 * much of that time the main thread ran: the rest others had the processor. Turns of the loop of under 20 ms are not a
 * stop.
 */
const everyMs = 5
const shortestMs = 20
const statistics = `/proc/self/task/${process.pid}/schedstat`

/** Time that the main thread has run, in ms. */
const ran = () => Number(readFileSync(statistics, 'utf8').split(' ')[0]) / 1e6

let at = performance.now()
let before = ran()
setInterval(() => {
  const now = performance.now()
  const runs = ran()
  if (now - at - everyMs >= shortestMs)
    console.error(`loop stop ${(now - at).toFixed(0)} ms, ran ${(runs - before).toFixed(0)} ms`)
  at = now
  before = runs
}, everyMs).unref()
