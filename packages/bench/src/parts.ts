// CPU time of the processes that serve together: nodes, Redis, PostgreSQL with all that it started.
import { readdirSync, readFileSync } from 'node:fs'
import { afterName, type CpuReading, cpuBetween, readCoreBusy, readCpu, TICKS_PER_SECOND } from './proc.ts'

export const PARTS = ['nodes', 'redis', 'postgres'] as const
export type PartName = (typeof PARTS)[number]

export interface Part {
  name: PartName
  pid: number
  /** Where it runs, with everything that it starts; none: anywhere. */
  cores: readonly number[]
}

export interface PartsReading {
  at: number
  /** Of each part its process and what that has started, by process id. */
  parts: { part: Part; cpu: Map<number, CpuReading>; reapedSeconds: number }[]
  /** Seconds that each core was busy. */
  busy: Map<number, number>
}

export interface PartsLoad {
  seconds: number
  cpuSeconds: Record<PartName, number>
  /** The largest share of any of their cores that others used; NaN where nothing is pinned. */
  othersShare: number
}

export function processesOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return [pid, ...(children === '' ? [] : children.split(' ').map(Number))]
}

export function readParts(parts: readonly Part[]): PartsReading {
  const cores = new Set(parts.flatMap((part) => part.cores))
  return {
    at: performance.now() / 1000,
    parts: parts.map((part) => ({ part, ...readPart(part.pid) })),
    busy: new Map([...cores].map((core) => [core, readCoreBusy(core)])),
  }
}

function readPart(pid: number): { cpu: Map<number, CpuReading>; reapedSeconds: number } {
  const cpu = new Map<number, CpuReading>()
  for (const each of processesOf(pid)) {
    try {
      cpu.set(each, readCpu(each))
    } catch {
      // It ended meanwhile, and is in what its parent has reaped.
    }
  }
  const fields = afterName(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  return { cpu, reapedSeconds: (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND }
}

export function partsBetween(before: PartsReading, after: PartsReading): PartsLoad {
  const seconds = after.at - before.at
  const cpuSeconds = { nodes: 0, redis: 0, postgres: 0 }
  /** Parts that share their cores, by those. */
  const own = new Map<string, { cores: readonly number[]; seconds: number }>()
  for (const [i, { part }] of after.parts.entries()) {
    const used = partBetween(before.parts[i]!, after.parts[i]!)
    cpuSeconds[part.name] += used
    const key = part.cores.join()
    own.set(key, { cores: part.cores, seconds: used + (own.get(key)?.seconds ?? 0) })
  }
  const shares = [...own.values()].map((place) => {
    const busy = place.cores.reduce((total, core) => total + after.busy.get(core)! - before.busy.get(core)!, 0)
    // A core's time is counted in ticks: two of them may be nobody's.
    const others = busy - place.seconds - (2 * place.cores.length) / TICKS_PER_SECOND
    return place.cores.length === 0 ? Number.NaN : Math.max(0, others / seconds / place.cores.length)
  })
  return { seconds, cpuSeconds, othersShare: Math.max(...shares) }
}

type PartReading = PartsReading['parts'][number]

/** A process that ended left its time to the one that started it; what it had used before is not counted twice. */
function partBetween(before: PartReading, after: PartReading): number {
  let seconds = after.reapedSeconds - before.reapedSeconds
  for (const [pid, cpu] of after.cpu) {
    seconds += cpuBetween(before.cpu.get(pid) ?? { statSeconds: 0, preciseSeconds: 0 }, cpu)
  }
  for (const [pid, { statSeconds }] of before.cpu) if (!after.cpu.has(pid)) seconds -= statSeconds
  return seconds
}

/** Moves running processes with all their threads to cores; what they start later stays there too. */
export function pinTo(pids: readonly number[], cores: readonly number[]): void {
  if (cores.length === 0) return
  for (const pid of pids) {
    const { exitCode, stderr } = Bun.spawnSync(['taskset', '-a', '-c', '-p', cores.join(), String(pid)])
    if (exitCode !== 0 && readdirSync('/proc').includes(String(pid))) throw new Error(`taskset: ${stderr}`)
  }
}
