// CPU time and memory as the kernel counts them.
import { readdirSync, readFileSync } from 'node:fs'

export const TICKS_PER_SECOND = 100

export interface CpuReading {
  /** utime + stime of /proc/PID/stat: all threads, also those that have ended. */
  statSeconds: number
  /** Sum over the live threads of /proc/PID/task/TID/schedstat: the same time to the nanosecond. NaN: not offered. */
  preciseSeconds: number
}

export function readCpu(pid: number): CpuReading {
  const fields = afterName(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  const ticks = Number(fields[11]) + Number(fields[12])
  return { statSeconds: ticks / TICKS_PER_SECOND, preciseSeconds: preciseCpu(pid) }
}

/** The fields of /proc/PID/stat behind the name, which may itself hold spaces and brackets. */
export function afterName(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function preciseCpu(pid: number): number {
  try {
    let nanoseconds = 0
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
    }
    return nanoseconds / 1e9
  } catch {
    return Number.NaN
  }
}

/** Seconds of CPU between two readings: the precise count, unless a thread ended and took its own share with it. */
export function cpuBetween(before: CpuReading, after: CpuReading): number {
  const coarse = after.statSeconds - before.statSeconds
  const precise = after.preciseSeconds - before.preciseSeconds
  const agree = Math.abs(precise - coarse) <= 3 / TICKS_PER_SECOND
  return agree ? precise : coarse
}

/**
 * Seconds that one core was busy with processes, whosever, since boot. Interrupts are left out: on the server's core
 * they are its own network traffic, nearly all.
 */
export function readCoreBusy(core: number): number {
  const line = readFileSync('/proc/stat', 'utf8')
    .split('\n')
    .find((candidate) => candidate.startsWith(`cpu${core} `))
  if (line === undefined) return Number.NaN
  const [user, nice, system, , , , , steal] = line.split(/\s+/).slice(1).map(Number)
  return (user! + nice! + system! + steal!) / TICKS_PER_SECOND
}

/** Resolves when a process has done what it still had to do: when it hardly uses its core any more. */
export async function quiet(pid: number): Promise<void> {
  for (let look = 0; look < 100; look++) {
    const before = readCpu(pid)
    await Bun.sleep(50)
    if (cpuBetween(before, readCpu(pid)) < 0.005) return
  }
}

/** Resident bytes of a process: the anonymous part that it owns and the files that it maps, as RSS means it. */
export function readRss(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  if (kilobytes === null) throw new Error(`No VmRSS for process ${pid}`)
  return Number(kilobytes[1]) * 1024
}

export interface LoadReading {
  at: number
  server: CpuReading
  core: number
  generator: number
}

export interface Load {
  seconds: number
  serverCpuSeconds: number
  /** Share of its core that the server used. */
  serverShare: number
  /** Share of the server's core that others used; NaN when the server is not pinned. */
  othersShare: number
  /** Share of one core that this generator process used. */
  generatorShare: number
}

/** A reading at one end of a measured interval. `beside`: processes whose work is part of the server's. */
export function readLoad(pid: number, core: number | null, beside: readonly number[] = []): LoadReading {
  const own = process.cpuUsage()
  return {
    at: performance.now() / 1000,
    server: [pid, ...beside].map(readCpu).reduce(sumOf),
    core: core === null ? Number.NaN : readCoreBusy(core),
    generator: (own.user + own.system) / 1e6,
  }
}

function sumOf(one: CpuReading, other: CpuReading): CpuReading {
  return {
    statSeconds: one.statSeconds + other.statSeconds,
    preciseSeconds: one.preciseSeconds + other.preciseSeconds,
  }
}

export function loadBetween(before: LoadReading, after: LoadReading): Load {
  const seconds = after.at - before.at
  const serverCpuSeconds = cpuBetween(before.server, after.server)
  // The core's time is counted in ticks: two of them may be nobody's.
  const others = after.core - before.core - serverCpuSeconds - 2 / TICKS_PER_SECOND
  return {
    seconds,
    serverCpuSeconds,
    serverShare: serverCpuSeconds / seconds,
    othersShare: Number.isNaN(others) ? Number.NaN : Math.max(0, others / seconds),
    generatorShare: (after.generator - before.generator) / seconds,
  }
}
