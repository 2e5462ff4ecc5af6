import type { Cancel } from '../ports/clock.ts'

/**
 * One timer for all work of a period. Such work begins together, at each multiple of the period: an idle process is woken
 * once for all of it, and what it asks a store for goes in one statement.
 */
interface Alarm {
  readonly work: Set<() => void>
  timer: ReturnType<typeof setTimeout>
}

const alarms = new Map<number, Alarm>()

/** Calls again and again, every `ms` milliseconds; the first time no later than after `ms`. Never keeps the process alive. */
export function every(ms: number, what: () => void): Cancel {
  // Each call is work of its own.
  const work = () => what()
  const alarm = alarms.get(ms) ?? ring(ms)
  alarm.work.add(work)
  return () => {
    alarm.work.delete(work)
    if (alarm.work.size > 0 || alarms.get(ms) !== alarm) return
    clearTimeout(alarm.timer)
    alarms.delete(ms)
  }
}

function ring(ms: number): Alarm {
  let dueAt = Math.floor(performance.now() / ms) * ms
  const next = () => {
    // What a pause held up comes once.
    do dueAt += ms
    while (dueAt <= performance.now())
    return setTimeout(go, dueAt - performance.now()).unref()
  }
  const go = () => {
    alarm.timer = next()
    for (const work of [...alarm.work]) if (alarm.work.has(work)) runApart(work)
  }
  const alarm: Alarm = { work: new Set(), timer: next() }
  alarms.set(ms, alarm)
  return alarm
}

/** An error of one keeps none of the others from its turn, and is reported as that of a timer is. */
function runApart(work: () => void): void {
  try {
    work()
  } catch (error) {
    setTimeout(() => {
      throw error
    })
  }
}
