import { readdirSync, readFileSync } from 'node:fs'

interface Process {
  readonly parent: number
  /** Its own, and that of its children that have ended, in ticks. */
  readonly ticks: number
}

/** Linux counts in hundredths of a second, whatever its own clock does. */
const ticksPerS = 100

/**
 * The CPU seconds that a process and all that it started have used until now, those that have ended included. Undefined
 * where the system does not list processes as Linux does.
 */
export function cpuSecondsOf(pid: number): number | undefined {
  const all = processes()
  if (!all.has(pid)) return undefined
  const below = (parent: number): number =>
    [...all].reduce((sum, [id, each]) => (each.parent === parent ? sum + each.ticks + below(id) : sum), 0)
  return ((all.get(pid)?.ticks ?? 0) + below(pid)) / ticksPerS
}

function processes(): ReadonlyMap<number, Process> {
  const found = new Map<number, Process>()
  for (const name of list('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = read(`/proc/${name}/stat`)
    // The name of the program is in parentheses, and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields.length < 15) continue
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    found.set(Number(name), { parent: Number(fields[1]), ticks })
  }
  return found
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Empty where the process has ended meanwhile. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
