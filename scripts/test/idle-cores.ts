import { cpus } from 'node:os'

/** Answers how many cores were idle, on average, since the last call: also those of processes that give way to anybody. */
export function watchIdleCores(): () => number {
  let before = timesOf()
  return () => {
    const now = timesOf()
    const [idle, all] = [now.idle - before.idle, now.all - before.all]
    before = now
    return all > 0 ? (idle / all) * now.cores : 0
  }
}

function timesOf() {
  const each = cpus().map(({ times }) => times)
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  return {
    idle: sum(each.map(({ idle }) => idle)),
    all: sum(each.map((times) => sum(Object.values(times)))),
    cores: each.length,
  }
}
