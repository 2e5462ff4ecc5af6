/** Which process listens on a port of this machine, for the message that says that the port is taken. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface PortHolder {
  readonly pid: number
  /** As the system calls its program. */
  readonly program: string
}

/** Undefined where that cannot be seen: on other systems than Linux, and of processes of another account. */
export function findPortHolder(port: number): PortHolder | undefined {
  try {
    const sockets = new Set(['tcp', 'tcp6'].flatMap((table) => listeningOn(port, `/proc/net/${table}`)))
    if (sockets.size === 0) return undefined
    for (const name of readdirSync('/proc')) {
      if (/^\d+$/.test(name) && holdsOne(name, sockets)) {
        return { pid: Number(name), program: readFileSync(`/proc/${name}/comm`, 'utf8').trim() }
      }
    }
  } catch {
    // Another system, or the process has just ended.
  }
  return undefined
}

const listenState = '0A'

/** The names of sockets, as the descriptors of their processes show them. A row: number, local, remote, state, …, inode. */
function listeningOn(port: number, table: string): string[] {
  const rows = read(table).split('\n').slice(1)
  return rows.flatMap((row) => {
    const [, local = '', , state, , , , , , inode] = row.trim().split(/\s+/)
    const isIt = state === listenState && Number.parseInt(local.split(':')[1] ?? '', 16) === port
    return isIt ? [`socket:[${inode}]`] : []
  })
}

function holdsOne(pid: string, sockets: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => sockets.has(linkOf(`/proc/${pid}/fd/${fd}`)))
  } catch {
    return false
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
